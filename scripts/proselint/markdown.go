package main

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

const maxLine = 100

var item = regexp.MustCompile(`^\s*(?:[-*]|\d+\.)\s+`)

// markdown returns the paragraphs, list items, headings and rows of a page, without its code.
func markdown(text string) ([]chunk, error) {
	var chunks []chunk
	fenced, open := false, false // in a fence; in a paragraph that goes on
	for n, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		fence := strings.HasPrefix(trimmed, "```")
		if fence {
			fenced = !fenced
		}
		switch {
		case fence || fenced || trimmed == "" || strings.HasPrefix(line, "    ") && !open:
			open = false
		case strings.HasPrefix(trimmed, "|"):
			for cell := range strings.SplitSeq(strings.Trim(trimmed, "|"), "|") {
				chunks = append(chunks, chunk{line: n + 1, text: cell, phrase: true})
			}
			open = false
		case strings.HasPrefix(trimmed, "#"):
			chunks = append(chunks, chunk{line: n + 1, text: trimmed, phrase: true})
			open = false
		case item.MatchString(line) || !open:
			chunks = append(chunks, chunk{line: n + 1, text: item.ReplaceAllString(line, "")})
			open = true
		default:
			chunks[len(chunks)-1].text += "\n" + trimmed
		}
	}
	return chunks, nil
}

// longLines reports the lines of prose that exceed 100 columns. A link can't be wrapped.
func longLines(text string) []finding {
	var found []finding
	fenced := false
	for n, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "```") {
			fenced = !fenced
		}
		width := utf8.RuneCountInString(line)
		unwrapped := strings.HasPrefix(line, "    ") || strings.HasPrefix(trimmed, "|") || strings.HasPrefix(trimmed, "![") || strings.HasPrefix(trimmed, "#")
		if fenced || unwrapped || width <= maxLine || len(strings.Fields(code.ReplaceAllString(item.ReplaceAllString(line, ""), "X"))) == 1 {
			continue
		}
		found = append(found, finding{line: n + 1, message: fmt.Sprintf("a line of %d columns, more than %d", width, maxLine)})
	}
	return found
}
