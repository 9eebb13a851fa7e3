package counter_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/counter"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/testing/zkenv"
)

func TestCounter(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		c, path := env.Client(t), recipetest.Path(t)
		n := newCounter(t, c, path)
		mustBe(t, n, 0)
		if swapped, err := n.CompareAndSet(t.Context(), 1, 2); swapped || err != nil {
			t.Errorf("compare and set of a missing znode, from 1: %v, %v; want false", swapped, err)
		}
		if v := mustAdd(t, n, 5); v != 5 {
			t.Errorf("5 added: %d", v)
		}
		if first, err := n.Take(t.Context(), 3); err != nil || first != 6 {
			t.Errorf("first of 3 numbers after 5: %d, %v; want 6", first, err)
		}
		mustBe(t, n, 8)
		must.OK(t, n.Set(t.Context(), -7))
		if swapped, err := n.CompareAndSet(t.Context(), -7, 40); !swapped || err != nil {
			t.Errorf("compare and set from -7: %v, %v; want true", swapped, err)
		}
		if swapped, err := n.CompareAndSet(t.Context(), -7, 50); swapped || err != nil {
			t.Errorf("compare and set again: %v, %v; want false", swapped, err)
		}
		if v := mustAdd(t, newCounter(t, env.Client(t), path), 2); v != 42 || n.Path() != path {
			t.Errorf("2 added by another client: %d, want 42", v)
		}
		data, _, err := c.Get(t.Context(), path)
		if err != nil || string(data) != "\x00\x00\x00\x00\x00\x00\x00\x2a" {
			t.Errorf("data %q, %v; want 8 bytes, as Curator's", data, err)
		}
	})
}

// TestOverflowWritesNothing: Java wraps around.
func TestOverflowWritesNothing(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		c, path := env.Client(t), recipetest.Path(t)
		for name, tc := range map[string]struct {
			opts       []counter.Option
			least, max int64
		}{
			"int64": {nil, math.MinInt64, math.MaxInt64},
			"int32": {[]counter.Option{counter.WithInt32()}, math.MinInt32, math.MaxInt32},
		} {
			n := newCounter(t, c, path+name, tc.opts...)
			for at, delta := range map[int64]int64{tc.max: 1, tc.least: -1, tc.max - 1: 2, tc.least + 2: tc.least} {
				must.OK(t, n.Set(t.Context(), at))
				if v, err := n.Add(t.Context(), delta); !errors.Is(err, counter.ErrOverflow) {
					t.Errorf("%s: %d added to %d: %d, %v; want ErrOverflow", name, delta, at, v, err)
				}
				mustBe(t, n, at)
			}
		}
		small := newCounter(t, c, path+"int32", counter.WithInt32())
		recipetest.Fails(t, "set beyond int32", small.Set(t.Context(), math.MaxInt32+1), counter.ErrOverflow)
		if data, _, err := c.Get(t.Context(), path+"int32"); err != nil || len(data) != 4 {
			t.Errorf("data %q, %v; want 4 bytes", data, err)
		}
	}, zkenv.Only("the server has no part in it", zkenv.Embedded))
}

func TestCorruptDataIsLeftAlone(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		c, path := env.Client(t), recipetest.Path(t)
		must.Get(c.Create(t.Context(), path, []byte("12345"), framework.WithParents()))(t)
		n := newCounter(t, c, path)
		_, get := n.Get(t.Context())
		_, add := n.Add(t.Context(), 1)
		_, take := n.Take(t.Context(), 1)
		_, swap := n.CompareAndSet(t.Context(), 0, 1)
		for name, err := range map[string]error{"Get": get, "Add": add, "Take": take, "Set": n.Set(t.Context(), 1), "CompareAndSet": swap} {
			if !errors.Is(err, counter.ErrCorrupt) || !strings.Contains(err.Error(), path) {
				t.Errorf("%s: %v, want ErrCorrupt and the path", name, err)
			}
		}
		if data, st, err := c.Get(t.Context(), path); err != nil || string(data) != "12345" || st.Version != 0 {
			t.Errorf("data %q at version %d, %v; want it unchanged", data, st.Version, err)
		}
		must.Get(c.Set(t.Context(), path, nil, 0))(t)
		if v := mustAdd(t, n, 3); v != 3 {
			t.Errorf("3 added to no data: %d, want 3 as for Curator", v)
		}
	}, zkenv.Only("the server has no part in it", zkenv.Embedded))
}

func TestArgumentsAreChecked(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		route, path := env.Route(t), recipetest.Path(t)
		n := newCounter(t, route.Client(t), path)
		route.ResetRequests()
		for _, k := range []int64{0, -1, math.MinInt64} {
			if _, err := n.Take(t.Context(), k); err == nil || !strings.Contains(err.Error(), "must be at least 1") {
				t.Errorf("Take(%d): %v, want an error that names the bound", k, err)
			}
		}
		ended, cancel := context.WithCancelCause(t.Context())
		cancel(errStop)
		if _, err := n.Add(ended, 1); !errors.Is(err, context.Canceled) || !errors.Is(err, errStop) || errors.Is(err, framework.ErrUnknownOutcome) {
			t.Errorf("Add with a context that has ended: %v; want its error and cause, and no doubt", err)
		}
		if sent := recipetest.Ops(route, path); len(sent) > 0 {
			t.Errorf("requests %v were sent", sent)
		}
	}, zkenv.Only("the server has no part in it", zkenv.Embedded))
}

var errStop = errors.New("stop")
