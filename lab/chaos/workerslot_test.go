package chaos_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/lab/history"
	"github.com/docent-go/docent/lab/peers"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zktest"
)

// A slot is a place for a worker: the ways to the ensemble, and one process after the
// other.
type slot struct {
	run     *run
	number  int
	proxies []*zkproxy.Proxy // one for each server

	mu      sync.Mutex // guards following
	process *process   // the present one
	started int
	busy    bool // a fault is being done to it
}

// A process is one worker.
type process struct {
	name  string
	cmd   *exec.Cmd
	stdin io.WriteCloser
	done  chan struct{} // closed by readLoop, when the process is gone and reaped
	err   error         // how it ended; published by done
}

func newSlot(t testing.TB, r *run, number int, servers []*zktest.Server) *slot {
	t.Helper()
	s := &slot{run: r, number: number}
	for _, server := range servers {
		s.proxies = append(s.proxies, zkproxy.Run(t, server.Addr()))
	}
	return s
}

// start starts a process in the slot.
func (s *slot) start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started++
	name := fmt.Sprintf("w%d.%d", s.number, s.started)
	var addrs []string
	for _, p := range s.proxies {
		addrs = append(addrs, p.Addr())
	}
	config, err := json.Marshal(workerConfig{
		Name: name, Connect: strings.Join(addrs, ","), Store: s.run.store.addr,
		Seed:    s.run.seed + uint64(1000*s.number+s.started),
		Session: s.run.session(s.number, s.started),
	})
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), workerVariable+"="+string(config))
	cmd.Stderr = os.Stderr
	peers.Detach(cmd)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	s.process = &process{name: name, cmd: cmd, stdin: stdin, done: make(chan struct{})}
	go s.process.readLoop(s.run.board, stdout)
	return nil
}

// readLoop is started by slot.start, ends with the process, and is waited for by whoever
// ends that.
func (p *process) readLoop(b *board, stdout io.Reader) {
	defer close(p.done)
	var garbled error
	for lines := bufio.NewReaderSize(stdout, 1<<16); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break // what is left is half a record of a process that was killed
		}
		var r history.Record
		if err := json.Unmarshal(line, &r); err != nil {
			garbled = fmt.Errorf("%s says %.200q", p.name, line)
			continue
		}
		b.add(r)
	}
	p.err = p.cmd.Wait()
	if garbled != nil {
		p.err = garbled
	}
}

// current returns the slot's process.
func (s *slot) current() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process
}

// claim takes the slot for a fault, if it is free.
func (s *slot) claim() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy {
		return false
	}
	s.busy = true
	return true
}

func (s *slot) yield() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy = false
}

// heal ends whatever was done to the slot's ways.
func (s *slot) heal() {
	for _, p := range s.proxies {
		p.Heal()
		p.ResetRequests() // they would add up
	}
}

// endLimit bounds how long a worker may take to end: it may have to wait for a
// server, and for what its client's Close waits for.
const endLimit = 30 * time.Second

// end has the process end by itself.
func (p *process) end() error {
	_ = p.stdin.Close() // a process that is gone has no use for it
	select {
	case <-p.done:
		return p.err
	case <-time.After(endLimit):
	}
	_ = p.cmd.Process.Kill() // or it is gone just now
	<-p.done
	return fmt.Errorf("%s did not end within %v", p.name, endLimit)
}
