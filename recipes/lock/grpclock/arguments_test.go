package grpclock_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/recipes/lock/grpclock"
)

// Nil arguments panic as in docent's own module: no function here has an error to return.
func TestNilArguments(t *testing.T) {
	t.Parallel()
	var none context.Context
	for want, call := range map[string]func(){
		"grpclock.Code: ctx: must not be nil":                      func() { grpclock.Code(none, lock.ErrHeld) },
		"grpclock.FenceFromContext: ctx: must not be nil":          func() { grpclock.FenceFromContext(none) },
		"grpclock.UnaryClientInterceptor: locker: must not be nil": func() { grpclock.UnaryClientInterceptor(nil) },
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if got := fmt.Sprint(recover()); !strings.HasPrefix(got, want) {
					t.Errorf("panic %q, want %q", got, want)
				}
			}()
			call()
		})
	}
	if grpclock.UnaryServerInterceptor(nil) == nil || grpclock.StreamServerInterceptor(nil) == nil {
		t.Error("leaked may be nil")
	}
}
