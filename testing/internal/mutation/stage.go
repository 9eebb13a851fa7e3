package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

// A stage is a run of tests that a mutant has to survive.
type stage struct {
	env      []string
	flags    []string // of test binaries
	packages []string
	limit    time.Duration // for a package
}

// unmeasured is the limit of a stage that was not measured yet.
const unmeasured = 30 * time.Minute

// parseStages reads stages that are separated by "--".
func parseStages(args []string) ([]stage, error) {
	first := stage{limit: unmeasured}
	stages := []stage{first}
	for _, arg := range args {
		s := &stages[len(stages)-1]
		switch {
		case arg == "--":
			stages = append(stages, first)
		case strings.HasPrefix(arg, "./"):
			s.packages = append(s.packages, arg)
		case strings.HasPrefix(arg, "-"):
			s.flags = append(s.flags, "-test."+strings.TrimPrefix(strings.TrimLeft(arg, "-"), "test."))
		case len(s.flags) == 0 && strings.Contains(arg, "="):
			s.env = append(s.env, arg)
		default:
			s.flags = append(s.flags, arg)
		}
	}
	for i, s := range stages {
		if len(s.packages) == 0 {
			return nil, fmt.Errorf("stage %d: no package", i+1)
		}
	}
	return stages, nil
}

// A verdict is what became of a mutant.
type verdict int

const (
	killed verdict = iota + 1
	hung
	survived
	invalid // it does not compile
)

func (v verdict) String() string {
	return [...]string{killed: "killed", hung: "HUNG", survived: "SURVIVED", invalid: "invalid"}[v]
}

// A finding is a verdict, with what led to it.
type finding struct {
	verdict verdict
	stage   int    // that noticed, from 1; 0 for none
	by      string // the first test that failed, or what was said
}

func (f finding) String() string {
	if f.stage == 0 {
		return f.verdict.String()
	}
	return fmt.Sprintf("%v in stage %d: %s", f.verdict, f.stage, f.by)
}

// run runs the stage's tests, as a build has them, to the first that fails.
func (s stage) run(ctx context.Context, b *build) (finding, error) {
	for _, pkg := range s.packages {
		binary, err := b.tests(ctx, pkg)
		if failed := (*buildError)(nil); errors.As(err, &failed) {
			return finding{verdict: invalid, by: failed.Error()}, nil
		} else if err != nil {
			return finding{}, err
		}
		if f, err := s.runTests(ctx, binary, pkg); err != nil || f.verdict != survived {
			return f, err
		}
	}
	return finding{verdict: survived}, nil
}

// grace is how much longer tests get that should have ended themselves by their limit.
const grace = 5 * time.Second

// timedOut finds, in what tests say then, the first that was running.
var timedOut = regexp.MustCompile(`(?m)^panic: test timed out after .*\n\s*running tests:\n\s*(\S+)`)

// runTests runs a package's tests, in its directory as go test does.
func (s stage) runTests(ctx context.Context, binary, dir string) (finding, error) {
	limited, cancel := context.WithTimeout(ctx, s.limit+grace)
	defer cancel()
	cmd := exec.CommandContext(limited, binary, append([]string{"-test.failfast", "-test.timeout=" + s.limit.String()}, s.flags...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), s.env...)
	cmd.WaitDelay = time.Second // a process that a test started may have its output
	endGroup(cmd)
	var out output
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var failed *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return finding{}, ctx.Err()
	case limited.Err() != nil:
		return finding{verdict: hung, by: dir}, nil
	case err == nil, errors.Is(err, exec.ErrWaitDelay):
		return finding{verdict: survived}, nil
	case errors.As(err, &failed):
		if running := timedOut.FindSubmatch(out.text); running != nil {
			return finding{verdict: hung, by: string(running[1])}, nil
		}
		return finding{verdict: killed, by: out.cause(failed)}, nil
	}
	return finding{}, err
}

// An output is the beginning of what tests print: a broken one may not stop.
type output struct{ text []byte }

const maxOutput = 1 << 20

func (o *output) Write(p []byte) (int, error) {
	o.text = append(o.text, p[:min(len(p), maxOutput-len(o.text))]...)
	return len(p), nil
}

var causes = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)|^(panic: .*)|^(fatal error: .*)`)

// cause returns what says best why the tests failed.
func (o *output) cause(err error) string {
	found := causes.FindSubmatch(o.text)
	if found == nil {
		return err.Error()
	}
	return string(found[1]) + string(found[2]) + string(found[3])
}
