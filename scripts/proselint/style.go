package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A style is the rules of a directory.
type style struct {
	terms    []term
	openings []opening
	max      int // words in a sentence
	tooLong  string
}

// A term is a word that the style replaces.
type term struct {
	old     *regexp.Regexp
	use     string
	message string
}

// An opening is a word that no sentence begins with.
type opening struct {
	words   *regexp.Regexp
	message string
}

// readStyle reads the directory's files. They have three of the forms that vale has: substitution,
// existence in a sentence, and occurrence in a sentence.
func readStyle(dir string) (*style, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yml"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no style", dir)
	}
	s := new(style)
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if err := s.add(string(text)); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return s, nil
}

// add adds the rule of one file.
func (s *style) add(text string) error {
	fields, items := parse(text)
	switch fields["extends"] {
	case "substitution":
		for _, item := range items {
			old, use, ok := strings.Cut(item, "': ")
			if !ok {
				return fmt.Errorf("%q: want 'regular expression': replacement", item)
			}
			old = strings.ReplaceAll(strings.TrimPrefix(old, "'"), " ", `\s+`) // also at the end of a line
			re, err := regexp.Compile(`(?i)\b(?:` + old + `)\b`)
			if err != nil {
				return err
			}
			s.terms = append(s.terms, term{re, use, fields["message"]})
		}
	case "existence":
		for _, item := range items {
			re, err := regexp.Compile(`^(?:` + strings.Trim(strings.TrimPrefix(item, "- "), "'") + `)`)
			if err != nil {
				return err
			}
			s.openings = append(s.openings, opening{re, fields["message"]})
		}
	case "occurrence":
		var err error
		if s.max, err = strconv.Atoi(fields["max"]); err != nil {
			return err
		}
		s.tooLong = fields["message"]
	default:
		return fmt.Errorf("extends: %q is not known", fields["extends"])
	}
	return nil
}

// parse takes a file apart: its fields, and the indented lines of its one list or map.
func parse(text string) (fields map[string]string, items []string) {
	fields = map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch key, value, _ := strings.Cut(line, ":"); {
		case strings.HasPrefix(line, "  "):
			items = append(items, strings.TrimSpace(line))
		case line != "" && line[0] != '#':
			fields[key] = strings.Trim(strings.TrimSpace(value), `"`)
		}
	}
	return fields, slices.Clip(items)
}
