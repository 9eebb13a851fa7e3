package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A mutant is a file with one thing in it changed.
type mutant struct {
	file   string
	line   int
	column int
	what   string
	source []byte
}

func (m mutant) String() string { return fmt.Sprintf("%s:%d:%d: %s", m.file, m.line, m.column, m.what) }

// mutantsOf returns all mutants of the files of a directory, tests apart, or of
// those that a pattern means.
func mutantsOf(pattern string) ([]mutant, error) {
	if !strings.HasSuffix(pattern, ".go") {
		pattern = filepath.Join(pattern, "*.go")
	}
	files, err := filepath.Glob(pattern)
	if err != nil {
		return nil, err
	}
	var all []mutant
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		found, err := mutate(file, source)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// mutate returns the mutants of one file.
func mutate(file string, source []byte) ([]mutant, error) {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, source, 0)
	if err != nil {
		return nil, err
	}
	x := mutation{file: file, source: source, set: set}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt:
			x.wrap(n.Cond, "!(", ")", "condition negated")
		case *ast.BinaryExpr:
			x.operator(n)
		case *ast.IncDecStmt:
			x.swap(n.TokPos, n.Tok, map[token.Token]token.Token{token.INC: token.DEC, token.DEC: token.INC}[n.Tok])
		case *ast.Ident:
			x.boolean(n)
		case *ast.BlockStmt:
			x.drop(n.List)
		case *ast.CaseClause:
			x.drop(n.Body)
		case *ast.CommClause:
			x.drop(n.Body)
		}
		return true
	})
	return x.found, nil
}

// A mutation collects the mutants of a file.
type mutation struct {
	file   string
	source []byte
	set    *token.FileSet
	found  []mutant
}

// replace adds the mutant that has text between two positions.
func (x *mutation) replace(from, to token.Pos, text, what string) {
	start, end := x.set.Position(from), x.set.Position(to)
	changed := slices.Concat(x.source[:start.Offset], []byte(text), x.source[end.Offset:])
	x.found = append(x.found, mutant{file: x.file, line: start.Line, column: start.Column, what: what, source: changed})
}

func (x *mutation) text(n ast.Node) string {
	text := string(x.source[x.set.Position(n.Pos()).Offset:x.set.Position(n.End()).Offset])
	first, _, _ := strings.Cut(text, "\n")
	return first
}

func (x *mutation) wrap(n ast.Expr, before, after, what string) {
	x.replace(n.Pos(), n.End(), before+x.whole(n)+after, what+": "+x.text(n))
}

func (x *mutation) whole(n ast.Node) string {
	return string(x.source[x.set.Position(n.Pos()).Offset:x.set.Position(n.End()).Offset])
}

func (x *mutation) swap(at token.Pos, from, to token.Token) {
	x.replace(at, at+token.Pos(len(from.String())), to.String(), from.String()+" becomes "+to.String())
}

// operator moves a bound by one, or exchanges what joins two conditions.
func (x *mutation) operator(n *ast.BinaryExpr) {
	others := map[token.Token]token.Token{
		token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
		token.LAND: token.LOR, token.LOR: token.LAND, token.ADD: token.SUB, token.SUB: token.ADD,
	}
	if to, ok := others[n.Op]; ok {
		x.swap(n.OpPos, n.Op, to)
	}
}

func (x *mutation) boolean(n *ast.Ident) {
	others := map[string]string{"true": "false", "false": "true"}
	if to, ok := others[n.Name]; ok {
		x.replace(n.Pos(), n.End(), to, n.Name+" becomes "+to)
	}
}

// drop leaves one statement out at a time. Declarations and returns are left in: without
// them a file seldom compiles.
func (x *mutation) drop(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt, *ast.DeferStmt, *ast.GoStmt, *ast.SendStmt, *ast.BranchStmt:
			x.replace(s.Pos(), s.End(), "", "left out: "+x.text(s))
		case *ast.AssignStmt:
			if s.Tok != token.DEFINE {
				x.replace(s.Pos(), s.End(), "", "left out: "+x.text(s))
			}
		}
	}
}
