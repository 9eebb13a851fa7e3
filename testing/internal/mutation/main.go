// Command mutation breaks a package in one place at a time and prints the breaks that its tests do
// not notice.
//
//	go run ./testing/internal/mutation -of recipes/lock -sample 30 -seed 1 -- \
//		ZK_TEST=none -run Contract ./recipes/lock -- ./recipes/lock ./testing/internal/sim
//
// Each -- begins a stage: settings of the environment, flags for the test binaries, and packages,
// which begin with "./". A mutant that survives a stage is tested in the next, so the first should
// be fast and the last thorough. A package's test binary is built once per mutant.
//
// If the tests take far longer than with nothing broken, the mutant is hung, and counted apart. A
// test that waits forever has noticed something; one that is slow on a busy machine has not.
//
// With -log the results are kept in a file. An interrupted run continues where it was, and -again
// tries once more what survived or hung.
//
// Nothing is written to the working tree: go's -overlay has the broken file.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"time"
)

// settings say what is broken, and how what breaks is noticed.
type settings struct {
	of     []string // directories, or patterns of files
	sample int      // 0 for all
	seed   uint64
	factor int           // a stage that takes so many times as long as with nothing broken,
	slack  time.Duration // and this, hangs
	log    string        // "" for none
	again  bool
	stages []stage
	out    io.Writer
}

func main() {
	s := settings{out: os.Stdout}
	of := flag.String("of", "recipes/lock,recipes/internal/waitqueue", "what is broken: directories, or patterns of files, separated by commas")
	flag.IntVar(&s.sample, "sample", 30, "how many mutants are tried; 0 for all")
	flag.Uint64Var(&s.seed, "seed", 1, "which ones")
	flag.IntVar(&s.factor, "factor", 5, "a stage hangs that takes so many times as long as with nothing broken, and the slack")
	flag.DurationVar(&s.slack, "slack", 10*time.Second, "see -factor")
	flag.StringVar(&s.log, "log", "", "file of verdicts: what is in it is not tried again")
	flag.BoolVar(&s.again, "again", false, "of what is in the log, try again what survived or hung")
	flag.Parse()
	s.of = strings.Split(*of, ",")
	// An interrupt ends the processes that this one started, too.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	survivors, err := s.run(ctx, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutation:", err)
		os.Exit(2)
	}
	if survivors > 0 {
		os.Exit(1)
	}
}

// run tries a sample of the mutants in the stages that args tell, and returns how
// many survived.
func (s settings) run(ctx context.Context, args []string) (survivors int, err error) {
	if s.stages, err = parseStages(args); err != nil {
		return 0, err
	}
	all, err := s.mutants()
	if err != nil {
		return 0, err
	}
	done, err := openLog(s.log, s.again)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, done.close()) }()
	if err := s.measure(ctx); err != nil {
		return 0, err
	}
	counts := map[verdict]int{}
	for i, m := range all {
		f, known := done.found[m.String()]
		if !known {
			if f, err = s.try(ctx, m); err != nil {
				return 0, err
			}
			if err := done.add(m, f); err != nil {
				return 0, err
			}
		}
		counts[f.verdict]++
		fmt.Fprintf(s.out, "%d/%d %s\t%s\n", i+1, len(all), m, f)
	}
	fmt.Fprintf(s.out, "%d mutants: %d killed, %d hung, %d survived, %d do not compile\n",
		len(all), counts[killed], counts[hung], counts[survived], counts[invalid])
	return counts[survived], nil
}

// mutants returns the sample.
func (s settings) mutants() ([]mutant, error) {
	var all []mutant
	for _, pattern := range s.of {
		found, err := mutantsOf(pattern)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	rng := rand.New(rand.NewPCG(s.seed, 0))
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	if s.sample > 0 {
		all = all[:min(s.sample, len(all))]
	}
	return all, nil
}

// measure runs every stage with nothing broken, and sets its limit by that. Tests that
// fail then would kill every mutant.
func (s settings) measure(ctx context.Context) error {
	b, err := newBuild("")
	if err != nil {
		return err
	}
	defer b.remove()
	for i := range s.stages {
		if f, err := s.stages[i].run(ctx, b); err != nil || f.verdict != survived {
			return errors.Join(fmt.Errorf("with nothing broken, stage %d: %v", i+1, f), err)
		}
		// Once more: the first time what the system caches is read.
		start := time.Now()
		if f, err := s.stages[i].run(ctx, b); err != nil || f.verdict != survived {
			return errors.Join(fmt.Errorf("with nothing broken, stage %d, the second time: %v", i+1, f), err)
		}
		took := time.Since(start)
		s.stages[i].limit = time.Duration(s.factor)*took + s.slack
		fmt.Fprintf(s.out, "stage %d takes %v, hangs after %v\n", i+1, took.Round(time.Millisecond), s.stages[i].limit.Round(time.Second))
	}
	return nil
}

// try takes a mutant through the stages, up to the one that notices it.
func (s settings) try(ctx context.Context, m mutant) (found finding, err error) {
	b, err := newBuild("")
	if err != nil {
		return finding{}, err
	}
	defer b.remove()
	if err := b.replace(m); err != nil {
		return finding{}, err
	}
	for i := range s.stages {
		if found, err = s.stages[i].run(ctx, b); err != nil || found.verdict != survived {
			found.stage = i + 1
			return found, err
		}
	}
	return found, nil
}
