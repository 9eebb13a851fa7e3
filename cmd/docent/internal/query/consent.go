package query

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/docent-go/docent/cmd/docent/internal/cli"
)

// errRefused is returned if the user does not type what was asked for.
var errRefused = errors.New("not confirmed: nothing was done")

// ask shows the question and returns the line that the user types. If ctx ends first, as by Ctrl-C, it
// returns ctx's error at once. A read of a terminal can't be ended, so its goroutine stays until the
// process ends, which is next.
func ask(ctx context.Context, app *cli.App, question string) (string, error) {
	fmt.Fprintf(app.Err, "%s ", question)
	typed := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(app.In).ReadString('\n') // without a line end it is no answer
		typed <- line
	}()
	select {
	case line := <-typed:
		if !strings.HasSuffix(line, "\n") {
			return "", errRefused
		}
		return strings.TrimSpace(line), nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// allowContext demands the name of a protected context, typed or given by --confirm-context.
func allowContext(ctx context.Context, app *cli.App, given string) error {
	s := app.Settings()
	if !s.Protected || given == s.Context {
		return nil
	}
	if given != "" || !cli.Terminal(app.In) {
		return cli.Usage(fmt.Errorf("the context %q is protected: give its name with --confirm-context", s.Context))
	}
	typed, err := ask(ctx, app, fmt.Sprintf("The context is protected. Type its name (%s):", cli.Safe(s.Context)))
	if err == nil && typed != s.Context {
		err = errRefused
	}
	return err
}
