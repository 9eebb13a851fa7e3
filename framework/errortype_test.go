package framework_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/listeners"
	"github.com/docent-go/docent/retry"
)

func TestErrorType(t *testing.T) {
	t.Parallel()
	inOp := func(err error) error { return &framework.OpError{Op: "get", Path: "/", Err: err} }
	for want, errs := range map[string][]error{
		"":                           {nil},
		"no_node":                    {framework.ErrNoNode, &framework.TxnError{Err: framework.ErrNoNode}},
		"node_exists":                {framework.ErrNodeExists, fmt.Errorf("%w, maybe (%w)", framework.ErrNodeExists, framework.ErrUnknownOutcome)},
		"bad_version":                {framework.ErrBadVersion},
		"not_empty":                  {framework.ErrNotEmpty},
		"no_children_for_ephemerals": {framework.ErrNoChildrenForEphemerals},
		"no_auth":                    {framework.ErrNoAuth},
		"auth_failed":                {framework.ErrAuthFailed},
		"invalid_acl":                {framework.ErrInvalidACL},
		"bad_arguments":              {framework.ErrBadArguments},
		"too_large":                  {framework.ErrTooLarge},
		"not_gzip":                   {framework.ErrNotGzip},
		"unsupported":                {framework.ErrUnsupported},
		"reconfig_disabled":          {framework.ErrReconfigDisabled},
		"reconfig_in_progress":       {framework.ErrReconfigInProgress},
		"no_quorum":                  {framework.ErrNoQuorum},
		"server_error":               {framework.ErrServer},
		"not_connected":              {framework.ErrNotConnected},
		"connection_loss":            {framework.ErrUnknownOutcome, &retry.ExhaustedError{Err: framework.ErrUnknownOutcome}},
		"session_ended":              {framework.ErrSessionEnded},
		"session_expired":            {framework.ErrSessionExpired},
		"session_deadline":           {framework.ErrSessionDeadline},
		"session_replaced":           {framework.ErrSessionReplaced},
		"client_closed":              {framework.ErrClosed},
		"invalid_path":               {framework.ErrInvalidPath, framework.ValidatePath("x")},
		"invalid_argument":           {retry.ErrInvalid, retry.Validate(retry.Times(-1, 0))},
		"panic":                      {&listeners.PanicError{Value: framework.ErrNoNode}},
		"canceled":                   {context.Canceled, fmt.Errorf("%w: %w", framework.ErrUnknownOutcome, context.Canceled)},
		"deadline_exceeded":          {fmt.Errorf("%w: %w", framework.ErrNotConnected, context.DeadlineExceeded)},
		"_OTHER":                     {errors.New("boom")},
	} {
		for _, err := range errs {
			if got := framework.ErrorType(err); got != want {
				t.Errorf("ErrorType(%v) = %q, want %q", err, got, want)
			}
			if err == nil {
				continue
			}
			op := inOp(err)
			if got := framework.ErrorType(op); got != want {
				t.Errorf("ErrorType(%v) = %q, want %q", op, got, want)
			}
			if got := semconv.ErrorType(op).Value.AsString(); got != want {
				t.Errorf("semconv.ErrorType(%v) = %q, want %q", op, got, want)
			}
		}
	}
}
