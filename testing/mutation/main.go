// Command mutation breaks a package in one place at a time and says which breaks
// its tests do not notice.
//
//	go run ./testing/mutation -sample 30 -seed 1 -- -run Contract ./recipes/lock
//
// What follows -- is given to go test. -of says what is broken.
// Nothing is written to the working tree: go's -overlay has the broken file.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	of := flag.String("of", "recipes/lock,recipes/internal/queue", "what is broken: directories, or patterns of files, separated by commas")
	sample := flag.Int("sample", 30, "how many mutants are tried; 0 for all")
	seed := flag.Uint64("seed", 1, "which ones")
	limit := flag.Duration("limit", 2*time.Minute, "a test run that takes longer has noticed")
	flag.Parse()
	survivors, err := run(strings.Split(*of, ","), *sample, *seed, *limit, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutation:", err)
		os.Exit(2)
	}
	if survivors > 0 {
		os.Exit(1)
	}
}

// run tries a sample of the mutants of the files and returns how
// many survived.
func run(dirs []string, sample int, seed uint64, limit time.Duration, test []string) (survivors int, err error) {
	var all []mutant
	for _, dir := range dirs {
		found, err := mutantsOf(dir)
		if err != nil {
			return 0, err
		}
		all = append(all, found...)
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	if sample > 0 {
		all = all[:min(sample, len(all))]
	}
	// Tests that fail, or take too long, with nothing broken would kill every mutant.
	if v, err := runTests("", limit, test); err != nil || v != survived {
		return 0, errors.Join(errors.New("the tests don't pass within the limit with nothing broken"), err)
	}
	counts := map[verdict]int{}
	for _, m := range all {
		v, err := try(m, limit, test)
		if err != nil {
			return 0, err
		}
		counts[v]++
		fmt.Printf("%-9s %s\n", v, m)
	}
	fmt.Printf("%d mutants: %d killed, %d survived, %d do not compile\n", len(all), counts[killed], counts[survived], counts[invalid])
	return counts[survived], nil
}

// A verdict is what became of a mutant.
type verdict int

const (
	killed verdict = iota + 1
	survived
	invalid // it does not compile
)

func (v verdict) String() string {
	return [...]string{killed: "killed", survived: "SURVIVED", invalid: "invalid"}[v]
}

// try runs the tests with the mutant in the place of its file.
func try(m mutant, limit time.Duration, test []string) (verdict, error) {
	dir, err := os.MkdirTemp("", "mutation")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // only temporary files are at stake
	overlay, err := write(dir, m)
	if err != nil {
		return 0, err
	}
	if err := exec.Command("go", "build", "-o", os.DevNull, "-overlay", overlay, "./"+filepath.Dir(m.file)).Run(); err != nil {
		return invalid, nil
	}
	return runTests(overlay, limit, test)
}

// runTests runs the tests with the files of an overlay, or with none broken.
func runTests(overlay string, limit time.Duration, test []string) (verdict, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	args := append([]string{"test", "-overlay=" + overlay, "-count=1", "-failfast", "-timeout", limit.String()}, test...)
	err := exec.CommandContext(ctx, "go", args...).Run()
	var failed *exec.ExitError
	switch {
	case err == nil:
		return survived, nil
	case errors.As(err, &failed), ctx.Err() != nil:
		return killed, nil
	}
	return 0, err
}

// write writes the mutant's file, and the overlay that puts it in place.
func write(dir string, m mutant) (overlay string, err error) {
	file := filepath.Join(dir, filepath.Base(m.file))
	if err := os.WriteFile(file, m.source, 0o600); err != nil {
		return "", err
	}
	original, err := filepath.Abs(m.file)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": {original: file}})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}
