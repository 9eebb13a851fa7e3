package zktest

import (
	"io"
	"os"
	"strings"
)

// maxTail is how much of a log's end is shown: enough for a stack trace and
// what led to it.
const maxTail = 8 << 10

// logSize returns the size of the server's log, 0 if there is none.
func (s *Server) logSize() int64 {
	info, err := os.Stat(s.layout.logFile())
	if err != nil {
		return 0
	}
	return info.Size()
}

// logSince returns the whole lines of the end of the server's log, as far as they were written
// after offset. If it can't read the log, it returns the reason in its place, because the log is
// always part of another error.
func (s *Server) logSince(offset int64) string {
	file, err := os.Open(s.layout.logFile())
	if err != nil {
		return err.Error()
	}
	defer file.Close()
	start := max(offset, s.logSize()-maxTail)
	text, err := io.ReadAll(io.NewSectionReader(file, start, maxTail))
	if err != nil {
		return err.Error()
	}
	tail := string(text)
	if start > offset {
		_, tail, _ = strings.Cut(tail, "\n")
	}
	return strings.TrimRight(tail, "\n")
}
