package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
)

var directive = regexp.MustCompile(`^//(go:|nolint|line |export |\+build)|^// Code generated|^// Output:|^// Unordered output:`)

// comments returns the paragraphs of a Go file's comments, without the code in them.
func comments(text string) ([]chunk, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "", text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			names[id.Name] = true
		}
		return true
	})
	var chunks []chunk
	for _, group := range file.Comments {
		found := paragraphs(fset, group)
		if len(found) > 0 { // what is declared may have an old word for its name
			if first, rest, _ := strings.Cut(found[0].text, " "); names[first] {
				found[0].text = "X " + rest
			}
		}
		chunks = append(chunks, found...)
	}
	return chunks, nil
}

// paragraphs takes a group of comments apart.
func paragraphs(fset *token.FileSet, group *ast.CommentGroup) []chunk {
	var chunks []chunk
	open := false
	for _, comment := range group.List {
		if directive.MatchString(comment.Text) {
			return chunks // what an example prints is no prose
		}
		first := fset.Position(comment.Pos()).Line
		for n, line := range strings.Split(strings.Trim(comment.Text, "/*"), "\n") {
			body := strings.TrimPrefix(line, " ")
			bullet := item.MatchString(body)
			switch trimmed := strings.TrimSpace(body); {
			case trimmed == "" || strings.HasPrefix(body, "\t"), strings.HasPrefix(body, "    ") && !open:
				open = false
			case strings.HasPrefix(trimmed, "# "):
				chunks = append(chunks, chunk{line: first + n, text: trimmed, phrase: true})
				open = false
			case bullet || !open:
				chunks = append(chunks, chunk{line: first + n, text: item.ReplaceAllString(trimmed, "")})
				open = true
			default:
				chunks[len(chunks)-1].text += "\n" + trimmed
			}
		}
	}
	return chunks
}
