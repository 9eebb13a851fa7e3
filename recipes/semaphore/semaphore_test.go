package semaphore_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/semaphore"
	"github.com/docent-go/docent/testing/zkenv"
)

func TestAcquireChecksItsArgument(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		route, path := env.Route(t), recipetest.Path(t)
		c := route.Client(t)
		fixed := newSemaphore(t, c, path, 2)
		variable := newSemaphore(t, c, path, 2, semaphore.WithPermitsAt(path+"-number"))
		route.ResetRequests()
		for name, call := range map[string]func(context.Context, int) (*lease.Lease, error){
			"Acquire": fixed.Acquire, "TryAcquire": fixed.TryAcquire,
			"Acquire of a variable number": variable.Acquire, "TryAcquire of a variable number": variable.TryAcquire,
		} {
			for n, want := range map[int]string{
				0: "permits to acquire 0: must be between 1 and 1000", -1: "permits to acquire -1",
				semaphore.MaxAtOnce + 1: "permits to acquire 1001",
			} {
				if _, err := call(t.Context(), n); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s(%d): %v, want an error that says %q", name, n, err, want)
				}
			}
		}
		for name, call := range map[string]func(context.Context, int) (*lease.Lease, error){
			"Acquire": fixed.Acquire, "TryAcquire": fixed.TryAcquire,
		} {
			_, err := call(t.Context(), 3)
			if !errors.Is(err, semaphore.ErrTooMany) || !strings.Contains(err.Error(), "3 permits of a semaphore of 2: ") {
				t.Errorf("%s of 3 permits of 2: %v, want ErrTooMany and both numbers", name, err)
			}
		}
		if sent := ops(route, path); len(sent) > 0 {
			t.Errorf("requests %v were sent for faulty arguments", sent)
		}
	}, zkenv.Only("no server has a part in it", zkenv.Embedded))
}

// TestAThousandPermitsAtOnce is the greatest number that Acquire takes.
func TestAThousandPermitsAtOnce(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		c, path := env.Client(t), recipetest.Path(t)
		s := newSemaphore(t, c, path, semaphore.MaxAtOnce)
		l := mustAcquire(t, s, semaphore.MaxAtOnce)
		if n := len(recipetest.Children(t, c, path+"/leases")); n != semaphore.MaxAtOnce {
			t.Errorf("%d znodes, want %d", n, semaphore.MaxAtOnce)
		}
		recipetest.Fails(t, "TryAcquire of one more", recipetest.Err(s.TryAcquire(t.Context(), 1)), lease.ErrHeld)
		mustRelease(t, l)
		recipetest.AwaitChildren(t, c, path+"/leases", 0)
	}, zkenv.Only("a transaction's limits are the same in all", zkenv.Embedded, zkenv.Standalone))
}

func TestParticipants(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		c, path := env.Client(t), recipetest.Path(t)
		s := newSemaphore(t, c, path, 3, recipes.WithData([]byte("holder")))
		held := mustAcquire(t, s, 2)
		recipetest.AwaitChildren(t, c, path+"/locks", 0)
		// One of its two permits is free: it holds none, nevertheless.
		waiting := acquireLater(t.Context(), newSemaphore(t, env.Client(t), path, 3, recipes.WithData([]byte("waiter"))), 2)
		recipetest.AwaitChildren(t, c, path+"/leases", 4)
		found := must.Get(s.Participants(t.Context()))(t)
		type shown struct {
			kind, data string
			holder     bool
		}
		want := []shown{
			{"lease-", "holder", true},
			{"lease-", "holder", true},
			{"lease-", "waiter", false},
			{"lease-", "waiter", false},
			{"lock-", "waiter", false},
		}
		if len(found) != len(want) {
			t.Fatalf("%d participants %+v, want %d", len(found), found, len(want))
		}
		for i, p := range found {
			if got := (shown{p.Kind, string(p.Data), p.Holder}); got != want[i] {
				t.Errorf("participant %d: %+v, want %+v", i, got, want[i])
			}
			if p.Metadata == nil || p.Metadata.PID == 0 {
				t.Errorf("participant %d has no metadata", i)
			}
		}
		mustRelease(t, held)
		mustRelease(t, recipetest.Granted(t, waiting))
	})
}

// TestZnodesWithoutMetadata hold what Curator's do.
func TestZnodesWithoutMetadata(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		c, path := env.Client(t), recipetest.Path(t)
		acl := acl.Open()
		s := newSemaphore(t, c, path, 2, recipes.WithoutMetadata(), recipes.WithData([]byte("mine")), recipes.WithACL(acl...))
		l := mustAcquire(t, s, 2)
		data, _, err := c.Get(t.Context(), l.Node())
		if err != nil || string(data) != "mine" {
			t.Errorf("data %q, %v; want that of WithData alone", data, err)
		}
		if s.Path() != path || l.Path() != path {
			t.Errorf("paths %s and %s, want %s", s.Path(), l.Path(), path)
		}
		mustRelease(t, l)
	}, zkenv.Only("the server has no part in it", zkenv.Embedded))
}
