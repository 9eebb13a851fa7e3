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

// A statusFile is open from the start, so that docent can refuse a path before it waits. The zero one is none.
type statusFile struct{ *os.File }

// openStatus opens the file with the mode, which is [beginStatus] or [renewStatus].
func openStatus(path string, mode int) (statusFile, error) {
	if path == "" {
		return statusFile{}, nil
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|mode, 0o644)
	if err != nil {
		return statusFile{}, fmt.Errorf("--status-file: %w", err)
	}
	return statusFile{file}, nil
}

const (
	beginStatus = os.O_TRUNC
	renewStatus = syscall.O_NONBLOCK // after the docent that had opened it has died: the reader of a pipe may have gone
)

// write writes the status in the place of what was written before, and closes the file if it is the last one. What
// can't be written again, such as a pipe, gets only that one.
func (f statusFile) write(s Status, last bool) error {
	if f.File == nil {
		return nil
	}
	_, err := f.Seek(0, io.SeekStart)
	if err = errors.Join(err, f.Truncate(0)); err != nil && !last {
		return nil //nolint:nilerr // it is no regular file
	}
	s.Schema = cli.Schema
	text, err := json.Marshal(s)
	if err == nil {
		_, err = f.Write(append(text, '\n'))
	}
	if last {
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("--status-file: %w", err)
	}
	return nil
}
