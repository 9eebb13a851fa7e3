package interop_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/lab/peers"
)

// generous bounds what has to happen at some time, on a machine as slow as it may be.
const generous = 30 * time.Second

// endLimit is how long a driver may take to close its sessions at the end.
const endLimit = 5 * time.Second

// A driver is a process of another library that does what it is told.
type driver struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	ready chan struct{} // closed by readLoop, at the driver's first line
	done  chan struct{} // closed by waitLoop, when the process is gone and reaped

	mu      sync.Mutex // guards following
	calls   int
	pending map[string]*call // by number
	events  map[string]int   // how often each came unasked
	ended   error            // why there will be no more answers
	errors  strings.Builder  // the process's stderr
}

// A call is a command that was given. Its answer is there once done is closed.
type call struct {
	text   string
	done   chan struct{} // closed by readLoop
	answer []string      // published by done
	err    error         // published by done
}

// startDriver starts the command as a driver. It has to be ended.
func startDriver(command []string) (*driver, error) {
	cmd := exec.Command(command[0], command[1:]...)
	peers.Detach(cmd)
	d := &driver{
		cmd: cmd, ready: make(chan struct{}), done: make(chan struct{}),
		pending: make(map[string]*call), events: make(map[string]int),
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	d.stdin, cmd.Stderr = stdin, (*stderrLog)(d)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go d.waitLoop(stdout)
	return d, nil
}

// A stderrLog collects what a driver writes to its standard error.
type stderrLog driver

func (l *stderrLog) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.errors.Write(text)
}

// waitLoop is started by startDriver. It ends with the process, and end and
// kill wait for it.
func (d *driver) waitLoop(stdout io.Reader) {
	defer close(d.done)
	d.readLoop(stdout)
	_ = d.cmd.Wait() // the state tells how it ended
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = fmt.Errorf("the driver has ended (%v): %s", d.cmd.ProcessState, d.errors.String())
	for _, c := range d.pending {
		c.err = d.ended
		close(c.done)
	}
	clear(d.pending)
}

// readLoop hands out the driver's lines until there are no more.
func (d *driver) readLoop(stdout io.Reader) {
	ready := d.ready
	for lines := bufio.NewReader(stdout); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		words := strings.Fields(line)
		switch {
		case ready != nil:
			close(ready)
			ready = nil
		case len(words) > 1 && words[0] == "*":
			d.note(strings.Join(words[1:], " "))
		case len(words) > 1:
			d.settle(words)
		}
	}
}

func (d *driver) note(event string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events[event]++
}

// count returns how often the event has come.
func (d *driver) count(event string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.events[event]
}

func (d *driver) settle(words []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.pending[words[0]]
	if c == nil {
		return
	}
	delete(d.pending, words[0])
	c.answer = words[1:]
	if words[1] == "error" {
		c.err = errors.New(strings.Join(words[2:], " "))
	}
	close(c.done)
}

// call gives the driver a command, for one of its actors.
func (d *driver) call(actor string, words ...string) *call {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls++
	number := strconv.Itoa(d.calls)
	c := &call{text: actor + " " + strings.Join(words, " "), done: make(chan struct{})}
	err := d.ended
	if err == nil {
		_, err = fmt.Fprintf(d.stdin, "%s %s\n", number, c.text)
	}
	if err != nil {
		c.err = err
		close(c.done)
		return c
	}
	d.pending[number] = c
	return c
}

// wait returns the results, or ok false where a limit was over before.
func (c *call) wait() (results []string, ok bool, err error) {
	select {
	case <-c.done:
	case <-time.After(generous):
		return nil, false, fmt.Errorf("%s: no answer within %v", c.text, generous)
	}
	if c.err != nil {
		return nil, false, fmt.Errorf("%s: %w", c.text, c.err)
	}
	return c.answer[1:], c.answer[0] == "ok", nil
}

// answered reports whether there is an answer.
func (c *call) answered() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// awaitReady returns once the driver takes commands.
func (d *driver) awaitReady() error {
	select {
	case <-d.ready:
		return nil
	case <-d.done:
		return d.ended
	case <-time.After(generous):
		return fmt.Errorf("the driver is not ready within %v", generous)
	}
}

// kill ends the process at once, with its sessions open.
func (d *driver) kill(t testing.TB) {
	t.Helper()
	if err := d.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	<-d.done
}

// end has the driver close its sessions and exit, or kills it.
func (d *driver) end() error {
	_ = d.stdin.Close() // a driver that is gone has no use for it
	select {
	case <-d.done:
		return nil
	case <-time.After(endLimit):
	}
	_ = d.cmd.Process.Kill() // or it is gone just now
	<-d.done
	return fmt.Errorf("a driver had to be killed: %w", d.ended)
}
