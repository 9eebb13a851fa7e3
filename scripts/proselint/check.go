package main

import (
	"fmt"
	"regexp"
	"strings"
)

// A chunk is a paragraph, a list item, a heading or a table's row.
type chunk struct {
	line   int // of its beginning
	text   string
	phrase bool // a heading or a row, which has no sentences
}

// A finding is what is wrong in one place.
type finding struct {
	path    string
	line    int
	message string
}

func (f finding) String() string { return fmt.Sprintf("%s:%d: %s", f.path, f.line, f.message) }

var (
	code     = regexp.MustCompile("`[^`]*`")
	links    = regexp.MustCompile(`!?\[([^\]]*)\](\([^)]*\))?`)
	quoted   = regexp.MustCompile(`"[^"]*"|“[^”]*”`)
	aside    = regexp.MustCompile(`\([^()]*\)`)
	codeList = regexp.MustCompile(`X(?:,\s+X)*(?:,?\s+(?:and|or)\s+X)?`)
	end      = regexp.MustCompile(`[.!?:][*_)"”]*\s+`)
	word     = regexp.MustCompile(`[\pL\pN][^\s]*`)
)

// check applies the style to the chunks.
func (s *style) check(chunks []chunk) []finding {
	var found []finding
	for _, c := range chunks {
		plain := links.ReplaceAllString(blank(c.text, code), "$1")
		found = append(found, s.checkTerms(c, plain)...)
		if !c.phrase {
			found = append(found, s.checkSentences(c, plain)...)
		}
	}
	return found
}

// checkTerms looks for words that the glossary replaces. A quotation may have them.
func (s *style) checkTerms(c chunk, plain string) []finding {
	var found []finding
	plain = blank(plain, quoted)
	for _, t := range s.terms {
		for _, at := range t.old.FindAllStringIndex(plain, -1) {
			line := c.line + strings.Count(plain[:at[0]], "\n")
			found = append(found, finding{line: line, message: fmt.Sprintf(t.message, t.use, oneLine(plain[at[0]:at[1]]))})
		}
	}
	return found
}

// checkSentences looks at the length and the opening of each sentence.
func (s *style) checkSentences(c chunk, plain string) []finding {
	var found []finding
	for begin := 0; begin < len(plain); {
		stop := len(plain)
		if at := end.FindStringIndex(plain[begin:]); at != nil {
			stop = begin + at[1]
		}
		sentence := strings.TrimSpace(plain[begin:stop])
		line := c.line + strings.Count(plain[:begin], "\n")
		begin = stop
		if n := words(sentence); n > s.max {
			found = append(found, finding{line: line, message: fmt.Sprintf("%s: it has %d: %.60s…", s.tooLong, n, oneLine(sentence))})
		}
		for _, o := range s.openings {
			if opening := o.words.FindString(sentence); opening != "" && !strings.HasSuffix(sentence, "?") {
				found = append(found, finding{line: line, message: fmt.Sprintf(o.message, strings.TrimSpace(opening))})
			}
		}
	}
	return found
}

// words counts words. A list of code counts as one word, and parentheses don't count.
func words(sentence string) int {
	sentence = aside.ReplaceAllString(sentence, " ")
	return len(word.FindAllString(codeList.ReplaceAllString(sentence, "X"), -1))
}

// blank replaces each match by an X, and keeps its ends of lines.
func blank(text string, what *regexp.Regexp) string {
	return what.ReplaceAllStringFunc(text, func(match string) string {
		return "X" + strings.Repeat("\n", strings.Count(match, "\n"))
	})
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
