package query

import (
	"bufio"
	"errors"
	"fmt"
	"strings"

	"github.com/docent-go/docent/cmd/docent/internal/cli"
)

// errRefused is returned if the user does not type what was asked for.
var errRefused = errors.New("not confirmed: nothing was done")

// ask shows the question and returns the line that the user types.
func ask(app *cli.App, question string) (string, error) {
	fmt.Fprintf(app.Err, "%s ", question)
	line, err := bufio.NewReader(app.In).ReadString('\n')
	if line == "" && err != nil {
		return "", errRefused
	}
	return strings.TrimSpace(line), nil
}

// allowContext demands the name of a protected context, typed or given by --confirm-context.
func allowContext(app *cli.App, given string) error {
	s := app.Settings()
	if !s.Protected || given == s.Context {
		return nil
	}
	if given != "" || !cli.Terminal(app.In) {
		return cli.Usage(fmt.Errorf("the context %q is protected: give its name with --confirm-context", s.Context))
	}
	typed, err := ask(app, fmt.Sprintf("The context is protected. Type its name (%s):", cli.Safe(s.Context)))
	if err == nil && typed != s.Context {
		err = errRefused
	}
	return err
}
