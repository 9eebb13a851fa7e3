package demo_test

import (
	"context"
	"os"
	"testing"

	"github.com/docent-go/docent/cmd/docent/internal/cli"
	"github.com/docent-go/docent/cmd/docent/internal/demo"
)

// programVariable makes the test binary docent itself.
const programVariable = "DOCENT_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(programVariable) != "" {
		app := &cli.App{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.Environ()}
		os.Exit(app.Main(context.Background(), os.Args[1:], demo.New))
	}
	os.Exit(m.Run())
}
