package boundary_test

import (
	"context"
	"errors"
	"testing"

	"github.com/docent-go/docent/internal/cause"
	"github.com/docent-go/docent/recipes/internal/boundary"
)

const recipe boundary.Recipe = "thing"

func TestErrorsOfARecipe(t *testing.T) {
	t.Parallel()
	fault, why := errors.New("it broke"), errors.New("the reason")
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	for _, c := range []struct {
		got  error
		want string
	}{
		{recipe.Error("open", "/a", nil), ""},
		{recipe.Error("open", "/a", fault), "thing: open /a: it broke"},
		{recipe.CallError(ended, "open", "/a", nil), ""},
		{recipe.CallError(ended, "open", "/a", ended.Err()), "thing: open /a: context canceled: the reason"},
		{recipe.CallError(cause.Inside(ended), "open", "/a", ended.Err()), "thing: open /a: context canceled"},
	} {
		if got := text(c.got); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	if err := recipe.CallError(ended, "open", "/a", ended.Err()); !errors.Is(err, why) {
		t.Errorf("%v does not match the cause", err)
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestApplySkipsAndReportsNilOptions(t *testing.T) {
	t.Parallel()
	var applied []string
	add := func(name string) func() { return func() { applied = append(applied, name) } }
	var missing interface{ apply() }
	faults := boundary.Apply([]any{add("a"), missing, add("b")}, func(o any) { o.(func())() })
	if len(applied) != 2 || len(faults) != 1 || faults[0].Error() != "option 1: must not be nil" {
		t.Errorf("applied %v with %v", applied, faults)
	}
}
