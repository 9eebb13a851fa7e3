package zktest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// A Server is one ZooKeeper server in a Java process of its own.
//
// Its address and its data outlive the process: [Server.Stop] and [Server.Kill]
// end the process, [Server.Restart] starts another one, and [Server.Close] ends
// it all.
type Server struct {
	layout layout // immutable
	config config // immutable
	words  atomic.Int64

	turn chan struct{} // holds the token of whoever restarts or closes

	mu      sync.Mutex // guards following; never held while waiting
	proc    *process   // the latest, which may have ended; nil before the first
	command []string   // of the next
	closed  bool
}

func newServer(l layout, in install, cfg config) *Server {
	return &Server{layout: l, config: cfg, command: l.command(in, cfg), turn: make(chan struct{}, 1)}
}

// Addr returns the address for clients, "127.0.0.1:port". It never changes.
func (s *Server) Addr() string { return s.layout.address() }

// Pid returns the process id of the server's process, or 0 when it has none.
func (s *Server) Pid() int {
	proc, err := s.running()
	if err != nil {
		return 0
	}
	return proc.pid()
}

// running returns the process, or ErrStopped.
func (s *Server) running() (*process, error) {
	s.mu.Lock()
	proc := s.proc
	s.mu.Unlock()
	if proc == nil || proc.gone() {
		return nil, ErrStopped
	}
	return proc, nil
}

// Freeze stops the process in its tracks (SIGSTOP): its connections stay open
// and the system goes on accepting new ones, but nothing is answered. It returns
// [ErrStopped] if there is no process.
func (s *Server) Freeze() error {
	proc, err := s.running()
	if err != nil {
		return err
	}
	return proc.freeze()
}

// Thaw lets a frozen process go on (SIGCONT) where it was, with its clock ahead.
// It does nothing to one that is not frozen, and returns [ErrStopped] if there
// is no process.
func (s *Server) Thaw() error {
	proc, err := s.running()
	if err != nil {
		return err
	}
	return proc.thaw()
}

// Kill ends the process at once (SIGKILL) and returns when it is gone. The
// server can be restarted. It does nothing if there is no process.
func (s *Server) Kill() error {
	proc, err := s.running()
	if err != nil {
		return nil //nolint:nilerr // there is no process: it is done
	}
	if err := proc.kill(); err != nil && !errors.Is(err, ErrStopped) {
		return fmt.Errorf("zktest: kill %s: %w", s.Addr(), err)
	}
	<-proc.done // the system ends a killed process without delay
	return nil
}

// Stop asks the process to end (SIGTERM), a frozen one too, and returns when it
// is gone. If ctx ends first the process is killed, and the error is ctx's. The
// server can be restarted. Stop does nothing if there is no process.
func (s *Server) Stop(ctx context.Context) error {
	proc, err := s.running()
	if err != nil {
		return nil //nolint:nilerr // there is no process: it is done
	}
	if err := proc.terminate(); err != nil && !errors.Is(err, ErrStopped) {
		return fmt.Errorf("zktest: stop %s: %w", s.Addr(), err)
	}
	select {
	case <-proc.done:
		return nil
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("zktest: stop %s: %w", s.Addr(), ended(ctx)), s.Kill())
	}
}

// Restart starts a process on the same data and address, after killing the one
// that runs, and returns when the server serves clients. A member of an ensemble
// does so once it has found a leader.
//
// If ctx ends first the error is ctx's, with the end of the server's log, and no
// process runs. It returns [ErrClosed] after Close.
func (s *Server) Restart(ctx context.Context) error {
	if err := s.restart(ctx); err != nil {
		return fmt.Errorf("zktest: start %s: %w", s.Addr(), err)
	}
	return nil
}

// RestartAt is Restart with the release of ZooKeeper in the directory home, as ZOOKEEPER_HOME would
// name it, or with the installed package if home is "". It and later runs are of that release: a
// rolling upgrade takes the members of an ensemble one after the other.
func (s *Server) RestartAt(ctx context.Context, home string) error {
	in, err := locateAt(home)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.command = s.layout.command(in, s.config)
	s.mu.Unlock()
	return s.Restart(ctx)
}

func (s *Server) restart(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return ended(ctx)
	}
	if err := s.Kill(); err != nil {
		return err
	}
	logged := s.logSize()
	proc, err := s.launch()
	if err != nil {
		return err
	}
	if err := s.awaitReady(ctx, proc, logged); err != nil {
		return errors.Join(err, s.Kill())
	}
	return nil
}

func (s *Server) launch() (*process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	proc, err := startProcess(s.layout, s.command)
	if err != nil {
		return nil, err
	}
	s.proc = proc
	s.words.Store(0) // the server starts counting again too
	return proc, nil
}

// closeTimeout bounds how long Close lets a Restart finish that is under way.
// Killing its process ends it much sooner.
const closeTimeout = 10 * time.Second

// Close kills the process, removes the server's data and returns when both are
// gone. Calling it again does nothing.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true // from here on nothing is launched
	s.mu.Unlock()
	if err := s.Kill(); err != nil {
		return err
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-time.After(closeTimeout):
		return fmt.Errorf("zktest: close %s: a restart did not end within %v", s.Addr(), closeTimeout)
	}
	if err := os.RemoveAll(s.layout.dir); err != nil {
		return fmt.Errorf("zktest: close %s: %w", s.Addr(), err)
	}
	return nil
}
