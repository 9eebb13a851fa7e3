package counter_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/counter"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/model"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
)

// TestUpdatesOfAllClientsAreKept: each update sees all updates before it.
func TestUpdatesOfAllClientsAreKept(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		const clients, rounds = 4, 5
		path := recipetest.Path(t)
		var wg sync.WaitGroup
		for i := range clients {
			v := newValue(t, env.Client(t), path)
			wg.Go(func() {
				for round := range rounds {
					own := fmt.Sprint(i, "-", round)
					got, err := v.Update(t.Context(), func(old []string, exists bool) ([]string, error) {
						if exists != (len(old) > 0) {
							t.Errorf("exists %v with %q", exists, old)
						}
						return append(old, own), nil
					})
					if err != nil || got[len(got)-1] != own {
						t.Errorf("update: %q, %v; want %s at the end", got, err, own)
					}
				}
			})
		}
		wg.Wait()
		all, err := newValue(t, env.Client(t), path).Update(t.Context(), func(old []string, _ bool) ([]string, error) { return old, nil })
		slices.Sort(all)
		if err != nil || len(slices.Compact(all)) != clients*rounds {
			t.Errorf("%q, %v; want %d different updates", all, err, clients*rounds)
		}
	})
}

func TestValue(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		c, path := env.Client(t), recipetest.Path(t)
		v := newValue(t, c, path)
		if got, err := v.Get(t.Context()); !errors.Is(err, framework.ErrNoNode) {
			t.Errorf("Get of a missing znode: %q, %v; want ErrNoNode", got, err)
		}
		must.OK(t, v.Set(t.Context(), []string{"a", "b"}))
		if got, err := v.Get(t.Context()); err != nil || !slices.Equal(got, []string{"a", "b"}) || v.Path() != path {
			t.Errorf("Get: %q, %v", got, err)
		}
		if _, err := v.Update(t.Context(), func([]string, bool) ([]string, error) { return nil, errStop }); !errors.Is(err, errStop) {
			t.Errorf("Update whose function fails: %v, want its error", err)
		}
		must.Get(c.Set(t.Context(), path, []byte("{"), framework.AnyVersion))(t)
		recipetest.Says(t, recipetest.Err(v.Get(t.Context())), path)
		if _, err := v.Update(t.Context(), func(old []string, _ bool) ([]string, error) { return old, nil }); err == nil {
			t.Error("Update of other data: no error")
		}
		if err := v.Set(t.Context(), []string{"c"}); err != nil {
			t.Errorf("Set of other data: %v", err)
		}
		raw := must.Get(counter.NewValue(c, path, model.Bytes()))(t)
		if data, err := raw.Get(t.Context()); err != nil || string(data) != `["c"]` {
			t.Errorf("Bytes: %q, %v", data, err)
		}
	}, zkenv.Only("the server has no part in it", zkenv.Embedded, zkenv.Standalone))
}

// TestUpdateWithItsReplyLost: the update is applied once, and says that it may not be.
func TestUpdateWithItsReplyLost(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		route, path := env.Route(t), recipetest.Path(t)
		v := newValue(t, route.Client(t), path)
		must.OK(t, v.Set(t.Context(), nil))
		route.Rules().Add(fault.Rule{Op: fault.SetData, Path: path, Action: fault.DropReply})
		_, err := v.Update(t.Context(), func(old []string, _ bool) ([]string, error) { return append(old, "a"), nil })
		recipetest.Fails(t, "Update", err, framework.ErrUnknownOutcome)
		if got, err := v.Get(t.Context()); err != nil || len(got) != 1 {
			t.Errorf("Get: %q, %v; want the update once", got, err)
		}
	}, zkenv.Only("the server has no part in it", zkenv.Embedded, zkenv.Standalone))
}

// TestAllShowsTheLatestValue: a value, a znode that is missing, data that does not decode, and the
// latest value after an outage.
func TestAllShowsTheLatestValue(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		type shown struct {
			value []string
			err   error
		}
		route, path, writer := env.Route(t), recipetest.Path(t), env.Client(t)
		v, source := newValue(t, route.Client(t), path), newValue(t, writer, path)
		ctx, cancel := context.WithCancel(t.Context())
		seen, over := make(chan shown, 16), make(chan struct{})
		go func() {
			defer close(over)
			for value, err := range v.All(ctx) {
				seen <- shown{value, err}
			}
		}()
		if got := must.Receive(t, seen, "the missing znode"); !errors.Is(got.err, framework.ErrNoNode) {
			t.Errorf("%q, %v; want ErrNoNode", got.value, got.err)
		}
		must.OK(t, source.Set(t.Context(), []string{"a"}))
		if got := must.Receive(t, seen, "the first value"); got.err != nil || !slices.Equal(got.value, []string{"a"}) {
			t.Errorf("%q, %v; want a", got.value, got.err)
		}
		must.Get(writer.Set(t.Context(), path, []byte("?"), framework.AnyVersion))(t)
		if got := must.Receive(t, seen, "other data"); got.err == nil {
			t.Errorf("%q for other data, want an error", got.value)
		}
		route.Refuse()
		route.Cut()
		for _, value := range []string{"b", "c"} {
			must.OK(t, source.Set(t.Context(), []string{value}))
		}
		route.Heal()
		if got := must.Receive(t, seen, "the value after the outage"); got.err != nil || !slices.Equal(got.value, []string{"c"}) {
			t.Errorf("%q, %v after the outage; want c alone", got.value, got.err)
		}
		cancel()
		must.Receive(t, over, "the end of the loop")
		if len(seen) > 0 {
			t.Errorf("also shown: %v", <-seen)
		}
	})
}
