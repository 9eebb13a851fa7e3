package counter_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/recipetest"
	"github.com/docent-go/docent/recipes/counter"
	"github.com/docent-go/docent/recipes/model"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
)

// TestUpdatesOfAllClientsAreKept: each update sees all updates before it.
func TestUpdatesOfAllClientsAreKept(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
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
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		c, path := env.Client(t), recipetest.Path(t)
		v := newValue(t, c, path)
		if got, err := v.Get(t.Context()); !errors.Is(err, framework.ErrNoNode) {
			t.Errorf("Get of a missing znode: %q, %v; want ErrNoNode", got, err)
		}
		if err := v.Set(t.Context(), []string{"a", "b"}); err != nil {
			t.Fatal(err)
		}
		if got, err := v.Get(t.Context()); err != nil || !slices.Equal(got, []string{"a", "b"}) || v.Path() != path {
			t.Errorf("Get: %q, %v", got, err)
		}
		if _, err := v.Update(t.Context(), func([]string, bool) ([]string, error) { return nil, errStop }); !errors.Is(err, errStop) {
			t.Errorf("Update whose function fails: %v, want its error", err)
		}
		if _, err := c.Set(t.Context(), path, []byte("{"), framework.AnyVersion); err != nil {
			t.Fatal(err)
		}
		if _, err := v.Get(t.Context()); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("Get of other data: %v, want an error with the path", err)
		}
		if _, err := v.Update(t.Context(), func(old []string, _ bool) ([]string, error) { return old, nil }); err == nil {
			t.Error("Update of other data: no error")
		}
		if err := v.Set(t.Context(), []string{"c"}); err != nil {
			t.Errorf("Set of other data: %v", err)
		}
		raw, err := counter.NewValue(c, path, model.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if data, err := raw.Get(t.Context()); err != nil || string(data) != `["c"]` {
			t.Errorf("Bytes: %q, %v", data, err)
		}
	}, zkenv.Only("the server has no part in it", zkenv.Embedded, zkenv.Standalone))
}

// TestUpdateWithItsReplyLost: the update is applied once, and says that it may not be.
func TestUpdateWithItsReplyLost(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		route, path := env.Route(t), recipetest.Path(t)
		v := newValue(t, route.Client(t), path)
		if err := v.Set(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		route.Rules().Add(fault.Rule{Op: fault.SetData, Path: path, Action: fault.DropReply})
		_, err := v.Update(t.Context(), func(old []string, _ bool) ([]string, error) { return append(old, "a"), nil })
		if !errors.Is(err, framework.ErrUnknownOutcome) {
			t.Errorf("Update: %v, want ErrUnknownOutcome", err)
		}
		if got, err := v.Get(t.Context()); err != nil || len(got) != 1 {
			t.Errorf("Get: %q, %v; want the update once", got, err)
		}
	}, zkenv.Only("the server has no part in it", zkenv.Embedded, zkenv.Standalone))
}

// TestAllShowsTheLatestValue: a value, a znode that is missing, data that does not decode, and the
// latest value after an outage.
func TestAllShowsTheLatestValue(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
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
		if err := source.Set(t.Context(), []string{"a"}); err != nil {
			t.Fatal(err)
		}
		if got := must.Receive(t, seen, "the first value"); got.err != nil || !slices.Equal(got.value, []string{"a"}) {
			t.Errorf("%q, %v; want a", got.value, got.err)
		}
		if _, err := writer.Set(t.Context(), path, []byte("?"), framework.AnyVersion); err != nil {
			t.Fatal(err)
		}
		if got := must.Receive(t, seen, "other data"); got.err == nil {
			t.Errorf("%q for other data, want an error", got.value)
		}
		route.Refuse()
		route.Cut()
		for _, value := range []string{"b", "c"} {
			if err := source.Set(t.Context(), []string{value}); err != nil {
				t.Fatal(err)
			}
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

// TestAllEnds with its loop, and with the client.
func TestAllEnds(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		c, path := env.Client(t), recipetest.Path(t)
		v := newValue(t, c, path)
		if err := v.Set(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		for range v.All(t.Context()) {
			break
		}
		shown := 0
		for range v.All(t.Context()) {
			shown++
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
		if shown != 1 {
			t.Errorf("%d values, want 1 before the client was closed", shown)
		}
	}, zkenv.Only("the server has no part in it", zkenv.Embedded))
}
