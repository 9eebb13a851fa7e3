package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"

	"github.com/docent-go/docent/lab/bench/contender"
)

// endLimit is how long a contender may take to close its sessions.
const endLimit = 3 * time.Second

// mostSaid is how many bytes are shown of what a contender wrote to its standard error.
const mostSaid = 300

// sessionTimeout is every contender's.
const sessionTimeout = 10 * time.Second

// A process is a contender that runs. It is used by one goroutine at a time.
type process struct {
	in      io.WriteCloser
	out     *json.Decoder
	pid     int // 0 for one that is no process
	version string
	kill    func()
	wait    func() error // returns when it has ended, by itself or by kill
}

// start starts the command as a contender. It has to be ended.
func start(ctx context.Context, command []string) (*process, error) {
	cmd := exec.Command(command[0], command[1:]...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{
		in: stdin, out: json.NewDecoder(stdout), pid: cmd.Process.Pid,
		kill: func() { _ = cmd.Process.Kill() }, // or it is gone
		wait: func() error {
			if err := cmd.Wait(); err != nil {
				said := stderr.Bytes() // before it dumps its stacks
				return fmt.Errorf("%w: %s", err, bytes.TrimSpace(said[:min(len(said), mostSaid)]))
			}
			return nil
		},
	}
	if err := p.greet(ctx); err != nil {
		p.kill()
		return nil, errors.Join(err, p.wait())
	}
	return p, nil
}

// greet waits for the contender's first line.
func (p *process) greet(ctx context.Context) error {
	a, err := p.answer(ctx)
	p.version = a.Version
	return err
}

// do gives a command and waits for its answer. A contender that has not answered by
// the end of ctx is killed.
func (p *process) do(ctx context.Context, words ...any) (contender.Answer, error) {
	if _, err := fmt.Fprintln(p.in, words...); err != nil {
		return contender.Answer{}, fmt.Errorf("%v: %w", words[0], err)
	}
	return p.answer(ctx)
}

// The following know nothing of one that is no process.

// memory returns its resident memory and the most that this has been since resetPeak, in bytes.
func (p *process) memory() (now, peak int64, err error) {
	if p.pid == 0 {
		return 0, 0, nil
	}
	return resident(p.pid)
}

func (p *process) resetPeak() error {
	if p.pid == 0 {
		return nil
	}
	return resetPeak(p.pid)
}

// weigh returns its resident memory without what is garbage, in bytes.
func (p *process) weigh(ctx context.Context) (int64, error) {
	if _, err := p.do(ctx, "gc"); err != nil {
		return 0, err
	}
	now, _, err := p.memory()
	return now, err
}

func (p *process) answer(ctx context.Context) (contender.Answer, error) {
	stop := context.AfterFunc(ctx, p.kill)
	defer stop()
	var a contender.Answer
	if err := p.out.Decode(&a); err != nil {
		return a, errors.Join(fmt.Errorf("no answer: %w", err), context.Cause(ctx))
	}
	if a.Error != "" {
		return a, errors.New(a.Error)
	}
	return a, nil
}

// end has the contender close its sessions and exit, or kills it.
func (p *process) end() error {
	_ = p.in.Close() // one that is gone has no use for it
	late := time.AfterFunc(endLimit, p.kill)
	defer late.Stop()
	return p.wait()
}
