package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// A process is a service that runs.
type process struct {
	name   string
	cmd    *exec.Cmd
	in     io.Closer
	events chan string // closed when the service's output has ended
	spans  []span      // complete when events is closed
}

// start starts the program as a service.
func start(ctx context.Context, name, connect string) (*process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{name: name, cmd: exec.CommandContext(ctx, program, "-service", name, "-connect", connect), events: make(chan string)}
	p.cmd.Stderr = os.Stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in = in
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go p.read(out)
	return p, nil
}

// read takes in what the service writes, until it ends.
func (p *process) read(out io.Reader) {
	defer close(p.events)
	dec := json.NewDecoder(out)
	for {
		var m message
		if dec.Decode(&m) != nil {
			return // its end; what went wrong is told by its exit code
		}
		if m.Span != nil {
			p.spans = append(p.spans, *m.Span)
		} else {
			p.events <- m.Event
		}
	}
}

// await waits for an event of the service, and takes no note of others.
func (p *process) await(event string) error {
	for got := range p.events {
		if got == event {
			return nil
		}
	}
	return errors.Join(fmt.Errorf("%s ended before it said %q", p.name, event), p.cmd.Wait())
}

// finish has the service finish its work, and waits until it has ended.
func (p *process) finish() error {
	if err := p.in.Close(); err != nil {
		return err
	}
	for range p.events { // to its end
	}
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	return nil
}
