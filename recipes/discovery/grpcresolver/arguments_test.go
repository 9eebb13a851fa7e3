package grpcresolver_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/recipes/discovery/grpcresolver"
)

// Nil arguments panic as in docent's own module: NewBuilder has no error to return.
func TestNilArguments(t *testing.T) {
	t.Parallel()
	for want, call := range map[string]func(){
		"registry: must not be nil": func() { grpcresolver.NewBuilder[string](nil) },
		"option: must not be nil":   func() { grpcresolver.NewBuilder(new(discovery.Registry[string]), nil) },
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			defer func() {
				got := fmt.Sprint(recover())
				if !strings.HasPrefix(got, "grpcresolver.NewBuilder") || !strings.HasSuffix(got, want) {
					t.Errorf("panic %q, want %q", got, want)
				}
			}()
			call()
		})
	}
	if _, ok := grpcresolver.InstanceOf[string](nil); ok {
		t.Error("no attributes have an instance")
	}
}
