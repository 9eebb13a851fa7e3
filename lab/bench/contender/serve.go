package contender

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// An Answer is what a contender says to a command, and once of itself at the start.
// A contender of any language leaves out what it can't tell.
type Answer struct {
	Version string `json:"version,omitempty"` // of the library: the first line
	Waiting bool   `json:"waiting,omitempty"` // a run has stopped half-way
	Heap    int64  `json:"heap,omitempty"`    // bytes that live, after "gc"
	Ops     int    `json:"ops,omitempty"`     // acquires with their releases
	Mallocs int64  `json:"mallocs,omitempty"` // meanwhile, of the whole process

	// In nanoseconds: the part that counts, and each sample.
	Elapsed time.Duration   `json:"elapsed,omitempty"`
	Samples []time.Duration `json:"samples,omitempty"`

	Error string `json:"error,omitempty"`
}

// Serve does what the lines of in ask of the library, and answers on out. It returns
// when in has ended and its sessions are closed. A run that waits when in ends goes
// on as ctx lets it.
func Serve(ctx context.Context, lib Library, in io.Reader, out io.Writer) (err error) {
	s := &server{lib: lib, in: bufio.NewScanner(in), out: json.NewEncoder(out)}
	s.stage.gate = s.waitForGo
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.out.Encode(Answer{Version: lib.Version()}); err != nil {
		return err
	}
	for s.in.Scan() {
		answer, err := s.obey(ctx, strings.Fields(s.in.Text()))
		if err != nil {
			answer = Answer{Error: err.Error()}
		}
		if err := s.out.Encode(answer); err != nil {
			return err
		}
	}
	return s.in.Err()
}

type server struct {
	lib   Library
	in    *bufio.Scanner
	out   *json.Encoder
	stage stage
}

func (s *server) close() error {
	var errs []error
	for _, session := range s.stage.sessions {
		if session != nil {
			errs = append(errs, session.Close())
		}
	}
	return errors.Join(errs...)
}

func (s *server) obey(ctx context.Context, words []string) (Answer, error) {
	switch {
	case len(words) == 3 && words[0] == "connect":
		return Answer{}, s.connect(ctx, strings.Split(words[1], ","), words[2])
	case len(words) == 7 && words[0] == "run":
		p, err := parsePlan(words[1:])
		if err != nil {
			return Answer{}, err
		}
		return s.run(ctx, p)
	case len(words) == 1 && words[0] == "gc":
		return collect(), nil
	default:
		return Answer{}, fmt.Errorf("no such command: %s", strings.Join(words, " "))
	}
}

func (s *server) connect(ctx context.Context, servers []string, timeout string) error {
	millis, err := strconv.Atoi(timeout)
	if err != nil {
		return err
	}
	for i := range s.stage.sessions {
		s.stage.sessions[i], err = s.lib.Connect(ctx, servers[i%len(servers)], time.Duration(millis)*time.Millisecond)
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *server) run(ctx context.Context, p Plan) (Answer, error) {
	if s.stage.sessions[0] == nil {
		return Answer{}, errors.New("not connected")
	}
	a, err := s.stage.play(ctx, p)
	if err != nil {
		return Answer{}, fmt.Errorf("%s of %s: %w", p.Load, p.Kind, err)
	}
	return a, nil
}

// waitForGo says that the run waits.
func (s *server) waitForGo() error {
	if err := s.out.Encode(Answer{Waiting: true}); err != nil {
		return err
	}
	for s.in.Scan() {
		switch s.in.Text() {
		case "go":
			return nil
		case "gc":
			if err := s.out.Encode(collect()); err != nil {
				return err
			}
		default:
			return fmt.Errorf("no command for a run that waits: %s", s.in.Text())
		}
	}
	return errors.Join(io.ErrUnexpectedEOF, s.in.Err())
}

func parsePlan(words []string) (Plan, error) {
	var numbers [3]int
	for i, word := range words[3:] {
		n, err := strconv.Atoi(word)
		if err != nil {
			return Plan{}, err
		}
		numbers[i] = n
	}
	return Plan{
		Load: words[0], Kind: words[1], Path: words[2],
		Workers: numbers[0], Ops: numbers[1], Settle: time.Duration(numbers[2]) * time.Millisecond,
	}, nil
}

// collect gives back to the system what is not used, and returns what is.
func collect() Answer {
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return Answer{Heap: int64(m.HeapAlloc + m.StackInuse)}
}

func mallocs() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.Mallocs)
}
