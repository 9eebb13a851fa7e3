package page_test

import (
	"context"
	"os"
	"testing"

	"github.com/docent-go/docent/cmd/docent/internal/cli"
	"github.com/docent-go/docent/cmd/docent/internal/page"
	"github.com/docent-go/docent/testing/zktest"
)

// programVariable makes the test binary docent itself.
const programVariable = "DOCENT_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(programVariable) != "" {
		app := &cli.App{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.Environ()}
		os.Exit(app.Main(context.Background(), os.Args[1:], page.New))
	}
	zktest.Main(suite{m})
}

// A suite closes the browser after its tests.
type suite struct{ *testing.M }

func (s suite) Run() int {
	defer func() {
		if browser.stop != nil {
			browser.stop()
		}
	}()
	return s.M.Run()
}
