package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime/pprof"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/docent-go/docent/lab/bench/contender"
)

// The flags.
type flags struct {
	rounds    int
	scenarios string
	mode      string
	rtt       string
	quick     bool
	fsync     bool
	json      string
	markdown  string
	profile   string
	before    string
	serve     string
	only      string
	compare   string
}

func main() {
	var f flags
	flag.IntVar(&f.rounds, "rounds", 7, "turns of each contender at each scenario")
	flag.StringVar(&f.scenarios, "scenarios", ".", "regular expression of the scenarios' names")
	flag.StringVar(&f.mode, "mode", "standalone,ensemble", "what to run on: standalone, ensemble (three nodes), embedded (this program's own server)")
	flag.StringVar(&f.rtt, "rtt", "0,2ms", "round-trip times to add; each mode is run with each")
	flag.BoolVar(&f.quick, "quick", false, "a tenth of everything, to see whether it works")
	flag.BoolVar(&f.fsync, "fsync", false, "let the servers wait for the disk")
	flag.StringVar(&f.json, "json", "", "file to write all figures to, as JSON")
	flag.StringVar(&f.markdown, "markdown", "", "file to write the tables to, beside standard output")
	flag.StringVar(&f.profile, "cpuprofile", "", "file for docent's CPU profile, of its last process")
	flag.StringVar(&f.before, "before", "", "this program built at another commit: its docent takes part as "+before)
	flag.StringVar(&f.only, "contenders", ".", "regular expression of the contenders' names")
	flag.StringVar(&f.compare, "compare", "", "with -before: directory for the rounds of before and after, as benchstat reads them")
	flag.StringVar(&f.serve, "serve", "", "be the contender of this name (for the program itself)")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := f.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func (f flags) run(ctx context.Context) (err error) {
	if f.serve != "" {
		return serve(ctx, f.serve, f.profile)
	}
	settings, err := f.settings()
	if err != nil {
		return err
	}
	wanted, err := regexp.Compile(f.scenarios)
	if err != nil {
		return fmt.Errorf("-scenarios: %w", err)
	}
	only, err := regexp.Compile(f.only)
	if err != nil {
		return fmt.Errorf("-contenders: %w", err)
	}
	dir, err := os.MkdirTemp("", "docent-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b := &bench{
		settings: settings, rounds: max(1, f.rounds), quick: f.quick, peers: locatePeers(ctx, dir, f.profile, f.before), log: os.Stderr,
	}
	b.peers = slices.DeleteFunc(b.peers, func(p *peer) bool { return !only.MatchString(p.name) })
	if f.quick {
		for _, p := range b.peers {
			p.warm /= 10
		}
	}
	for _, s := range scenarios() {
		if wanted.MatchString(s.name) {
			if f.before != "" {
				s.kinds[before] = s.kinds[docent]
			}
			b.scenarios = append(b.scenarios, s)
		}
	}
	if len(b.scenarios) == 0 {
		return fmt.Errorf("-scenarios: none is called %s", f.scenarios)
	}
	r, err := b.run(ctx)
	if err != nil {
		return err
	}
	return errors.Join(f.write(r), r.failures())
}

func (f flags) settings() ([]setting, error) {
	var settings []setting
	for mode := range strings.SplitSeq(f.mode, ",") {
		for rtt := range strings.SplitSeq(f.rtt, ",") {
			d, err := time.ParseDuration(rtt)
			if err != nil || d < 0 {
				return nil, fmt.Errorf("-rtt %s: must be durations that are not negative, such as 0,2ms", f.rtt)
			}
			switch mode {
			case standalone, ensemble, embedded:
				settings = append(settings, setting{mode: mode, rtt: d, fsync: f.fsync})
			default:
				return nil, fmt.Errorf("-mode %s: must be of %s, %s, %s", f.mode, standalone, ensemble, embedded)
			}
		}
	}
	return settings, nil
}

// write writes the report to standard output and where the flags say.
func (f flags) write(r *report) error {
	var text strings.Builder
	r.markdown(&text)
	if _, err := io.WriteString(os.Stdout, text.String()); err != nil {
		return err
	}
	var errs []error
	if f.markdown != "" {
		errs = append(errs, writeFile(f.markdown, []byte(text.String())))
	}
	if f.json != "" {
		data, err := r.json()
		errs = append(errs, err, writeFile(f.json, data))
	}
	if f.compare != "" {
		for contender, file := range map[string]string{before: "before.txt", docent: "after.txt"} {
			errs = append(errs, writeFile(filepath.Join(f.compare, file), []byte(r.rounds(contender))))
		}
	}
	return errors.Join(errs...)
}

func writeFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}

// serve is what this program does as a contender. It ends soon after its input, even
// if a lock hangs.
func serve(ctx context.Context, name, profile string) error {
	lib := contender.Libraries()[name]
	if lib == nil {
		return fmt.Errorf("-serve %s: no such contender", name)
	}
	if profile != "" {
		file, err := os.Create(profile)
		if err != nil {
			return err
		}
		defer file.Close()
		if err := pprof.StartCPUProfile(file); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	return contender.Serve(ctx, lib, lastInput{os.Stdin}, os.Stdout)
}

// lastInput ends the process some time after the end of the input.
type lastInput struct{ io.Reader }

func (l lastInput) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		time.AfterFunc(2*endLimit, func() { os.Exit(1) })
	}
	return n, err
}
