package query_test

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/docent-go/docent/cmd/docent/internal/cli"
	"github.com/docent-go/docent/cmd/docent/internal/query"
	"github.com/docent-go/docent/testing/zktest"
)

// programVariable makes the test binary docent itself.
const programVariable = "DOCENT_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(programVariable) != "" {
		app := &cli.App{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.Environ()}
		os.Exit(app.Main(context.Background(), os.Args[1:], query.Commands()...))
	}
	// The loop that os/signal starts at its first use must not belong to a test's bubble.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR2)
	signal.Stop(signals)
	zktest.Main(m)
}
