package zktest

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"

	"go.uber.org/goleak"
)

// A MainOption configures [Main].
type MainOption interface{ apply(*mainConfig) }

type mainOptionFunc func(*mainConfig)

func (f mainOptionFunc) apply(c *mainConfig) { f(c) }

type mainConfig struct {
	shared    []Option
	checkLeak bool
	leak      []goleak.Option
}

// WithShared sets the options of the servers that the package's tests share.
// The default is none.
func WithShared(opts ...Option) MainOption {
	return mainOptionFunc(func(c *mainConfig) { c.shared = append(c.shared, opts...) })
}

// WithLeakCheck makes the run fail if goroutines are left when all tests have
// passed and the shared servers are closed. The default is not to look.
func WithLeakCheck(opts ...goleak.Option) MainOption {
	return mainOptionFunc(func(c *mainConfig) { c.checkLeak, c.leak = true, append(c.leak, opts...) })
}

// Main runs a package's tests and ends the process with their exit code; it is
// all that a TestMain needs. It closes the servers that [Shared] and
// [SharedEnsemble] have started, even when it panics, and writes the line about
// skipped tests. Where no server is to be had, examples don't run, since an
// example can't skip itself.
func Main(m interface{ Run() int }, opts ...MainOption) {
	_, _ = net.LookupIP("localhost") // the resolver's state must not belong to a test's synctest bubble
	os.Exit(runMain(m, os.Stderr, opts))
}

func runMain(m interface{ Run() int }, stderr io.Writer, opts []MainOption) (code int) {
	var cfg mainConfig
	for _, opt := range opts {
		opt.apply(&cfg)
	}
	if _, err := newConfig(cfg.shared); err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	reason, err := unavailable()
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	if reason != "" {
		if err := skipExamples(); err != nil {
			fmt.Fprintln(stderr, err)
			return 2
		}
	}
	suite.open(cfg.shared, reason)
	defer func() { code = finish(stderr, cfg, code) }()
	return m.Run()
}

// finish closes the shared servers and returns the run's exit code: 1 if all was
// well until then and no longer is.
func finish(stderr io.Writer, cfg mainConfig, code int) int {
	err := suite.close()
	if cfg.checkLeak && code == 0 {
		err = errors.Join(err, goleak.Find(cfg.leak...))
	}
	suite.reportSkips(stderr)
	if err != nil {
		fmt.Fprintln(stderr, err)
		code = max(code, 1)
	}
	return code
}

// skipExamples adds the examples to what go test's -skip says.
func skipExamples() error {
	if !flag.Parsed() {
		flag.Parse()
	}
	skip := flag.Lookup("test.skip")
	if skip == nil {
		return nil // not a test binary: then there are no examples
	}
	pattern := "^Example"
	if old := skip.Value.String(); old != "" {
		pattern = old + "|" + pattern
	}
	return skip.Value.Set(pattern)
}
