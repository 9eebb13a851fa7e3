package zktest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// readyPoll is how often a starting server is asked; it needs some 200 ms on
	// an idle machine.
	readyPoll = 20 * time.Millisecond

	// probeTimeout bounds one question to a server that may be frozen, or to another process on
	// its port that never answers.
	probeTimeout = time.Second
)

// awaitReady returns when the server serves clients, or with the reason why it
// will not and the log from offset logged on.
func (s *Server) awaitReady(ctx context.Context, proc *process, logged int64) error {
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		probe, cancel := context.WithTimeout(ctx, probeTimeout)
		_, err := s.status(probe)
		cancel()
		if err == nil && s.itself(ctx) {
			return nil
		}
		gone := proc.gone() // asked first: then the log is complete
		switch log := s.logSince(logged); {
		case taken(log):
			return fmt.Errorf("%w\n%s", errPortTaken, log)
		case gone:
			return fmt.Errorf("process ended: %s\n%s", proc.state, log)
		case ctx.Err() != nil:
			return fmt.Errorf("%w; last answer: %v\n%s", ended(ctx), err, log) //nolint:errorlint // a probe that timed out is not what ended ctx
		}
		select {
		case <-proc.done:
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// itself reports whether this server answers at its address. Another one may have bound the port
// first, and this server's process is then about to fail. The data directory distinguishes them.
func (s *Server) itself(ctx context.Context) bool {
	probe, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	answer, err := s.FourLetter(probe, "conf")
	return err == nil && strings.Contains(answer, filepath.ToSlash(s.layout.dataDir()))
}

// taken reports whether the log speaks of a port that could not be bound.
func taken(log string) bool {
	return strings.Contains(log, "BindException") || strings.Contains(log, "Address already in use")
}

// errNotServing is a probe's error while a server runs but serves no client.
var errNotServing = errors.New("not serving requests")

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
