package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// A log keeps findings in a file, a line each.
type log struct {
	file  *os.File // nil for none
	found map[string]finding
}

// openLog reads the findings that are in a file; with again, only those that can't get better. An
// empty name is no log.
func openLog(name string, again bool) (*log, error) {
	l := &log{found: make(map[string]finding)}
	if name == "" {
		return l, nil
	}
	text, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		var f finding
		what, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if _, err := fmt.Sscanf(rest, "%d\t%d\t%q", &f.verdict, &f.stage, &f.by); err != nil || f.verdict < killed || f.verdict > invalid {
			return nil, fmt.Errorf("%s: not a finding: %q", name, line)
		}
		delete(l.found, what) // a later line is of a later try
		if !again || f.verdict == killed || f.verdict == invalid {
			l.found[what] = f
		}
	}
	l.file, err = os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	return l, err
}

func (l *log) add(m mutant, f finding) error {
	if l.file == nil {
		return nil
	}
	_, err := fmt.Fprintf(l.file, "%s\t%d\t%d\t%q\n", m, f.verdict, f.stage, f.by)
	return err
}

func (l *log) close() error {
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}
