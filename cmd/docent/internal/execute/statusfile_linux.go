package execute

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/docent-go/docent/cmd/docent/internal/cli"
)

// A statusFile is open from the start, so that docent can refuse a path before it waits. It is
// nil if there is none.
type statusFile struct {
	file    *os.File
	regular bool // it can be written again
}

// openStatus opens the file with the mode, which is [beginStatus] or [renewStatus].
func openStatus(path string, mode int) (*statusFile, error) {
	if path == "" {
		return nil, nil
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|mode, 0o644)
	if err != nil {
		return nil, fmt.Errorf("--status-file: %w", err)
	}
	info, err := file.Stat()
	return &statusFile{file, err == nil && info.Mode().IsRegular()}, nil
}

const (
	beginStatus = os.O_TRUNC
	renewStatus = syscall.O_NONBLOCK // after the docent that had opened it has died: the reader of a pipe may have gone
)

// interim writes the status of a run that goes on, if it can be written again.
func (f *statusFile) interim(s Status) error {
	if f == nil || !f.regular {
		return nil
	}
	return f.replace(s)
}

// write writes the status and closes the file.
func (f *statusFile) write(s Status) error {
	if f == nil {
		return nil
	}
	err := f.replace(s)
	if closing := f.file.Close(); err == nil && closing != nil {
		err = fmt.Errorf("--status-file: %w", closing)
	}
	return err
}

// replace writes the status in the place of what was written before.
func (f *statusFile) replace(s Status) error {
	s.Schema = cli.Schema
	text, err := json.Marshal(s)
	if err == nil && f.regular {
		_, err = f.file.Seek(0, io.SeekStart)
		err = errors.Join(err, f.file.Truncate(0))
	}
	if err == nil {
		_, err = f.file.Write(append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("--status-file: %w", err)
	}
	return nil
}
