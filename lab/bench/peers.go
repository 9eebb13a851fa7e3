package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/docent-go/docent/lab/peers"
)

//go:embed java/BenchDriver.java
var javaDriver []byte

//go:embed python/bench_driver.py
var pythonDriver []byte

// warmJava is for how many operations Curator plays a scenario before it counts. Java compiles a
// method fully after some thousand calls, and an operation calls most of its methods more than
// once. The first scenario warms them for the rest.
const warmJava = 3000

// A peer is a contender and how to start it.
type peer struct {
	name    string
	warm    int                                         // operations before a scenario counts, at the least
	launch  func(ctx context.Context) (*process, error) // nil where it is missing
	skip    error                                       // why it is missing
	version string                                      // of the library, as its latest process has said
	process *process                                    // nil until it is needed, and once it has died
}

// field returns a process that is connected to the servers.
func (p *peer) field(ctx context.Context, addrs []string) (*process, error) {
	if p.process != nil {
		return p.process, nil
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	started, err := p.launch(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := started.do(ctx, "connect", strings.Join(addrs, ","), sessionTimeout.Milliseconds()); err != nil {
		started.kill()
		return nil, errors.Join(err, started.wait())
	}
	p.process, p.version = started, started.version
	return started, nil
}

// dismiss ends the process, if there is one.
func (p *peer) dismiss() error {
	if p.process == nil {
		return nil
	}
	err := p.process.end()
	p.process = nil
	if err != nil && !strings.Contains(err.Error(), "killed") {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	return nil
}

// locatePeers returns all contenders, those that are not installed too. It uses dir
// for what it has to compile. profile is where docent's CPU profile is to go, if
// anywhere. earlier is this program built at another commit, or empty.
func locatePeers(ctx context.Context, dir, profile, earlier string) []*peer {
	all := []*peer{{name: wire}, {name: pipelined}, {name: docent}, {name: gozk}, {name: curator, warm: warmJava}, {name: kazoo}}
	if earlier != "" {
		all = append(all, &peer{name: before})
	}
	for _, p := range all {
		command, err := p.locate(ctx, dir, earlier)
		if err != nil {
			p.skip = err
			continue
		}
		if p.name == docent && profile != "" {
			command = append(command, "-cpuprofile", profile)
		}
		p.launch = func(ctx context.Context) (*process, error) { return start(ctx, command) }
	}
	return all
}

func (p *peer) locate(ctx context.Context, dir, earlier string) ([]string, error) {
	switch p.name {
	case curator:
		return locateCurator(ctx, dir)
	case kazoo:
		return locateKazoo(ctx, dir)
	case before:
		return []string{earlier, "-serve", docent}, nil
	default:
		self, err := os.Executable()
		return []string{self, "-serve", p.name}, err
	}
}

// locateCurator compiles Curator's driver. Java has the collector that it chooses by
// itself, and is not short of memory.
func locateCurator(ctx context.Context, dir string) ([]string, error) {
	command, err := peers.Compile(ctx, dir, "BenchDriver", javaDriver, "-Xmx1g", "-XX:-UsePerfData",
		"-Djava.net.preferIPv4Stack=true", "-Dorg.slf4j.simpleLogger.defaultLogLevel=ERROR")
	return append(command, peers.CuratorVersion()), err
}

func locateKazoo(ctx context.Context, dir string) ([]string, error) {
	python, err := peers.Kazoo(ctx)
	if err != nil {
		return nil, err
	}
	script := filepath.Join(dir, "bench_driver.py")
	return []string{python, script}, os.WriteFile(script, pythonDriver, 0o644)
}

// errSkipped is what is reported of a contender that is missing.
var errSkipped = errors.New("SKIPPED, NOT MEASURED")
