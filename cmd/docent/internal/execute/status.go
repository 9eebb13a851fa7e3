package execute

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/docent-go/docent/cmd/docent/internal/cli"
)

// A Status is what the status file says about the end of an exec.
type Status struct {
	Schema   string     `json:"schema"`
	Outcome  string     `json:"outcome"`
	Reason   string     `json:"reason,omitempty"` // of a loss, or the type of the error
	Child    Child      `json:"child"`
	Waited   float64    `json:"waited"` // seconds
	Held     float64    `json:"held"`   // seconds
	Fence    string     `json:"fence,omitempty"`
	WarnedAt *time.Time `json:"warned_at,omitempty"`
	KilledAt *time.Time `json:"killed_at,omitempty"`
}

// A Child says how CMD ended. Both are nil if it did not run.
type Child struct {
	Code   *int    `json:"code"`
	Signal *string `json:"signal"`
}

// A statusFile is open from the start, so that docent can refuse a path before it waits. It is
// nil if there is none.
type statusFile struct{ file *os.File }

func openStatus(path string) (*statusFile, error) {
	if path == "" {
		return nil, nil
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return nil, cli.Usage(fmt.Errorf("--status-file: %w", err))
	}
	return &statusFile{file}, nil
}

// write writes the status and closes the file.
func (f *statusFile) write(s Status) error {
	if f == nil {
		return nil
	}
	s.Schema = cli.Schema
	err := json.NewEncoder(f.file).Encode(s)
	if closing := f.file.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return fmt.Errorf("--status-file: %w", err)
	}
	return nil
}

func optionalTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
