package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/docent-go/docent/lab/bench/contender"
)

// onServer is the setting of tests of the whole: this process's own server.
var onServer = setting{mode: embedded}

// smoke returns a quick bench.
func smoke(rounds int, scenarios []scenario, peers []*peer, s setting) *bench {
	return &bench{settings: []setting{s}, scenarios: scenarios, rounds: rounds, quick: true, peers: peers, log: io.Discard}
}

// differing returns the scenarios without those that are to a contender what an earlier one is, but for
// numbers.
func differing(contender string) []scenario {
	seen := make(map[[2]string]bool)
	return slices.DeleteFunc(scenarios(), func(s scenario) bool {
		key := [2]string{s.load, s.kinds[contender]}
		again := seen[key]
		seen[key] = true
		return again
	})
}

func scenarioNamed(t *testing.T, name string) scenario {
	t.Helper()
	all := scenarios()
	i := slices.IndexFunc(all, func(s scenario) bool { return s.name == name })
	if i < 0 {
		t.Fatalf("no scenario %s", name)
	}
	return all[i]
}

// inProcess returns a peer that runs on goroutines of this process.
func inProcess(ctx context.Context, name string) *peer {
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

// played returns entrants that have had these turns.
func played(turns map[string][]turn) (all []*entrant) {
	for name, own := range turns {
		all = append(all, &entrant{peer: &peer{name: name}, turns: own})
	}
	return all
}

func of(s scenarioResult, name string) figures {
	i := slices.IndexFunc(s.Contenders, func(f figures) bool { return f.Contender == name })
	if i < 0 {
		return figures{}
	}
	return s.Contenders[i]
}

func markdownOf(r *report) string {
	var text strings.Builder
	r.markdown(&text)
	return text.String()
}
