package args_test

import (
	"context"
	"errors"
	"testing"

	"github.com/docent-go/docent/recipes/internal/args"
)

const recipe args.Recipe = "thing"

func TestErrorsOfARecipe(t *testing.T) {
	t.Parallel()
	fault, why := errors.New("it broke"), errors.New("the reason")
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	for _, c := range []struct {
		got  error
		want string
	}{
		{recipe.Error(nil, "open", "/a", nil), ""},
		{recipe.Error(nil, "open", "/a", fault), "thing: open /a: it broke"},
		{recipe.CallError(ended, nil, "open", "/a", nil), ""},
		{recipe.CallError(ended, nil, "open", "/a", ended.Err()), "thing: open /a: context canceled: the reason"},
	} {
		if got := text(c.got); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	if err := recipe.CallError(ended, nil, "open", "/a", ended.Err()); !errors.Is(err, why) {
		t.Errorf("%v does not match the cause", err)
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestConfigureSkipsAndReportsNilOptions(t *testing.T) {
	t.Parallel()
	named := func(name string) args.NodeOption { return &args.Options{Name: name} }
	var cfg args.Options
	cfg.Fault("depth %d: must be 0 or more", -1)
	faults := args.Configure[args.NodeOption](&cfg, []args.NodeOption{named("a"), nil, named("b")}, args.NodeOption.ForNode)
	if got, want := text(errors.Join(faults...)), "option 1: must not be nil\ndepth -1: must be 0 or more"; got != want || cfg.Name != "b" {
		t.Errorf("faults %q, want %q; the name is %q", got, want, cfg.Name)
	}
}
