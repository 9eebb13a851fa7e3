package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/docent-go/docent/cmd/docent/internal/form"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/zktel"
)

// The exit codes of all commands but exec and hold.
const (
	CodeDone        = 0
	CodeFailed      = 1   // the connection, credentials, an error of the ensemble
	CodeUsage       = 2   // flags, arguments, configuration
	CodeNothing     = 3   // nothing is there: "who" of a free lock, "ls" of a missing ROOT
	CodeFindings    = 4   // doctor found something
	CodeTimeout     = 124 // the time of "wait" is over
	CodeInterrupted = 130 // by INT or TERM
)

// An ExitError is an error with an exit code. Err is nil if the command has said all itself.
type ExitError struct {
	Code int
	Err  error

	usage bool // see Usage: a command may have the same code for something else
}

// Error returns the text of Err.
func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap returns Err.
func (e *ExitError) Unwrap() error { return e.Err }

// Usage returns err as the error of a wrong flag, argument or setting.
func Usage(err error) error { return &ExitError{Code: CodeUsage, Err: err, usage: true} }

// UsageCode is the annotation of a command whose usage errors have another exit code.
const UsageCode = "docent/usage-code"

// exit shows err and returns the exit code.
func (a *App) exit(cmd *cobra.Command, err error) int {
	if err == nil {
		return CodeDone
	}
	code, said, usage := CodeFailed, false, IsUsage(err)
	var coded *ExitError
	switch {
	case errors.As(err, &coded):
		// What is joined to an ExitError without an Err, such as a file that can't be written, has to be shown.
		code, said = coded.Code, coded.Err == nil && err.Error() == coded.Error()
	case cmd.Context().Err() != nil:
		code = CodeInterrupted
	case !cmd.HasParent(): // cobra's own errors, as of an unknown command
		code, usage = CodeUsage, true
	}
	if own, fault := strconv.Atoi(cmd.Annotations[UsageCode]); usage && fault == nil {
		code = own
	}
	if !said {
		a.showError(cmd, usage, err)
	}
	return code
}

// An ErrorDocument is an error in JSON.
type ErrorDocument struct {
	Schema string      `json:"schema"`
	Error  ErrorDetail `json:"error"`
}

// An ErrorDetail says what failed.
type ErrorDetail struct {
	Type    string `json:"type"` // as zktel.ErrorType, or "usage"
	Message string `json:"message"`
	Path    string `json:"path,omitempty"`
}

// Schema names the version of all JSON that docent writes.
const Schema = form.Version

// showError writes err to standard error, in the form that --output asks for.
func (a *App) showError(cmd *cobra.Command, usage bool, err error) {
	message := Safe(err.Error())
	if format := a.flags.values.Output; format == JSON || format == JSONLines {
		detail := ErrorDetail{Type: zktel.ErrorType(err), Message: message}
		if usage {
			detail.Type = "usage"
		}
		if op := (*framework.OpError)(nil); errors.As(err, &op) {
			detail.Path = Safe(op.Path)
		}
		_ = json.NewEncoder(a.Err).Encode(ErrorDocument{Schema, detail}) // nothing is left to report it to
		return
	}
	fmt.Fprintf(a.Err, Says+"%s\n", message)
	if usage {
		fmt.Fprintf(a.Err, "Try: %s --help\n", cmd.CommandPath())
	}
}

// IsUsage reports whether err is of a wrong flag, argument or setting.
func IsUsage(err error) bool {
	var coded *ExitError
	return errors.As(err, &coded) && coded.usage
}
