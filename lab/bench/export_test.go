package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/docent-go/docent/lab/bench/contender"
)

type (
	Bench    = bench
	Report   = report
	Setting  = setting
	Scenario = scenario
	Figures  = figures
	Peer     = peer
)

const (
	Wire    = wire
	Docent  = docent
	Before  = before
	Gozk    = gozk
	Curator = curator
	Kazoo   = kazoo
)

// Scenarios returns the table, or those of the given loads.
func Scenarios(loads ...string) []Scenario {
	var some []Scenario
	for _, s := range scenarios() {
		for _, load := range loads {
			if s.load == load {
				some = append(some, s)
			}
		}
		if len(loads) == 0 {
			some = append(some, s)
		}
	}
	return some
}

// Differing returns the scenarios without those that are to a contender what an
// earlier one is, but for numbers.
func Differing(contender string) []Scenario {
	var some []Scenario
	seen := make(map[[2]string]bool)
	for _, s := range scenarios() {
		key := [2]string{s.load, s.kinds[contender]}
		if !seen[key] {
			seen[key] = true
			some = append(some, s)
		}
	}
	return some
}

func (s Scenario) Name() string             { return s.name }
func (s Scenario) Kinds() map[string]string { return s.kinds }

// Smoke returns a quick bench.
func Smoke(rounds int, scenarios []Scenario, peers []*Peer, settings ...Setting) *Bench {
	return &bench{settings: settings, scenarios: scenarios, rounds: rounds, quick: true, peers: peers, log: io.Discard}
}

// InProcess returns a peer that runs on goroutines of this process.
func InProcess(ctx context.Context, name string) *Peer {
	return &peer{name: name, launch: func(launching context.Context) (*process, error) {
		in, stdin := io.Pipe()
		stdout, out := io.Pipe()
		ended := make(chan error, 1)
		go func() {
			err := contender.Serve(ctx, contender.Libraries()[name], in, out)
			ended <- errors.Join(err, out.Close(), in.Close())
		}()
		p := &process{
			in: stdin, out: json.NewDecoder(stdout),
			kill: func() { _ = stdin.CloseWithError(errors.New("killed")) },
			wait: func() error { return <-ended },
		}
		return p, p.greet(launching)
	}}
}

// Interrupting returns the peer, which calls interrupt as it starts.
func Interrupting(p *Peer, interrupt func()) *Peer {
	own := *p
	own.launch = func(ctx context.Context) (*process, error) {
		interrupt()
		return p.launch(ctx)
	}
	return &own
}

// Missing returns a peer that is not installed.
func Missing(name string, why error) *Peer { return &peer{name: name, skip: why} }

// Located returns the peers of the given names as the program finds them.
func Located(ctx context.Context, dir string, names ...string) []*Peer {
	var found []*peer
	for _, p := range locatePeers(ctx, dir, "", "") {
		for _, name := range names {
			if p.name == name {
				p.warm = 0
				found = append(found, p)
			}
		}
	}
	return found
}

func (p *Peer) Skip() error { return p.skip }

func NewSetting(mode string) Setting { return setting{mode: mode} }

func Embedded() Setting { return setting{mode: embedded} }

func Start(ctx context.Context, command ...string) error {
	p, err := start(ctx, command)
	if err == nil {
		err = p.end()
	}
	return err
}

// A Turn is what one turn of a contender has shown.
type Turn struct {
	Ops, Elapsed, Mallocs, Requests, Grown, Peak int64
	Samples                                      []int64
	CPU                                          time.Duration
}

// Summarize does with given turns what is done with those that were played.
func Summarize(s Scenario, in Setting, turns map[string][]Turn, failed map[string]error) scenarioResult {
	var entrants []*entrant
	for name, all := range turns {
		e := &entrant{team: &team{peer: &peer{name: name}}, err: failed[name]}
		for _, t := range all {
			e.turns = append(e.turns, turn{
				Answer:   contender.Answer{Ops: int(t.Ops), Elapsed: t.Elapsed, Samples: t.Samples, Mallocs: t.Mallocs},
				requests: t.Requests, grown: t.Grown, peak: t.Peak, client: usage{cpu: t.CPU},
			})
		}
		entrants = append(entrants, e)
	}
	return summarize(s, in, entrants)
}

func (r *Report) Markdown() string {
	var text strings.Builder
	r.markdown(&text)
	return text.String()
}

func (r *Report) JSON() ([]byte, error) { return r.json() }

func (r *Report) Failures() error { return r.failures() }

func (b *Bench) Run(ctx context.Context) (*Report, error) { return b.run(ctx) }

func (s scenarioResult) Of(name string) Figures {
	for _, f := range s.Contenders {
		if f.Contender == name {
			return f
		}
	}
	return figures{}
}

func (s *Setting) SetRTT(d time.Duration) { s.rtt = d }

// Add adds a setting with one scenario.
func (r *Report) Add(name string, s scenarioResult) {
	r.Settings = append(r.Settings, settingResult{Setting: name, Scenarios: []scenarioResult{s}})
}

// RoundLines returns a contender's rounds as benchstat reads them.
func (r *Report) RoundLines(contender string) string { return r.rounds(contender) }
