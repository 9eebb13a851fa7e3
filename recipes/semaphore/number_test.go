package semaphore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/semaphore"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
)

// TestFewerPermitsTakeNothing: a smaller number takes no permit from a holder, and the next
// contender waits until the holders have come down to it.
func TestFewerPermitsTakeNothing(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		c, path := env.Client(t), recipetest.Path(t)
		s := newSemaphore(t, c, path, 3, semaphore.WithPermitsAt(path+"-number"))
		held := []*lease.Lease{mustAcquire(t, s, 1), mustAcquire(t, s, 2)}
		recipetest.AwaitChildren(t, c, path+"/locks", 0)
		setNumber(t, c, path+"-number", 2)
		done := acquireLater(t.Context(), s, 1)
		recipetest.AwaitChildren(t, c, path+"/leases", 4)
		mustRelease(t, held[0])
		env.Quiesce()
		if len(done) > 0 {
			t.Error("a contender was granted a permit while two of two were held")
		}
		if err := held[1].Err(); err != nil {
			t.Errorf("lease of a holder: %v", err)
		}
		mustRelease(t, held[1])
		mustRelease(t, recipetest.Granted(t, done))
	})
}

// TestNoGrantByAnOldNumber: the number becomes smaller after an attempt has read it, and before the
// listing that would grant. Acquire waits and TryAcquire refuses: two holders of one permit otherwise.
func TestNoGrantByAnOldNumber(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		c, route, path := env.Client(t), env.Route(t), recipetest.Path(t)
		at := semaphore.WithPermitsAt(path + "-number")
		held := mustAcquire(t, newSemaphore(t, c, path, 2, at), 1)
		recipetest.AwaitChildren(t, c, path+"/locks", 0)
		s := newSemaphore(t, route.Client(t), path, 2, at)
		// The listing is a request of its own, or a part of a multiRead.
		delay := fault.Rule{Path: path + "/leases", Action: fault.DelayRequest, Delay: 300 * time.Millisecond}
		listed := route.Rules().Add(delay)
		done := acquireLater(t.Context(), s, 1)
		<-listed.Hit()
		setNumber(t, c, path+"-number", 1)
		recipetest.AwaitChildren(t, c, path+"/leases", 2)
		<-time.After(time.Second) // no event says that nothing is granted
		if len(done) > 0 {
			t.Error("a second holder was granted the only permit")
		}
		mustRelease(t, held)
		mustRelease(t, recipetest.Granted(t, done))
	}, zkenv.Only("a number is read in each the same way", zkenv.Embedded, zkenv.Standalone))
}

// TestNoRefusalByAnOldNumber: the number becomes greater after a TryAcquire has read it, and another program takes one
// of the two permits. One is free at each moment, so the call gets it.
func TestNoRefusalByAnOldNumber(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		c, route, path := env.Client(t), env.Route(t), recipetest.Path(t)
		at := semaphore.WithPermitsAt(path + "-number")
		mustRelease(t, mustAcquire(t, newSemaphore(t, c, path, 1, at), 1))
		created := route.Rules().Add(fault.Rule{Path: path + "/leases/*", Action: fault.DelayRequest, Delay: time.Second})
		tries := newSemaphore(t, route.Client(t), path, 1, at)
		done := recipetest.Later(t.Context(), func(ctx context.Context) (*lease.Lease, error) { return tries.TryAcquire(ctx, 1) })
		<-created.Hit()
		setNumber(t, c, path+"-number", 2)
		must.Get(c.Create(t.Context(), path+"/leases/another-program", nil, framework.Ephemeral()))(t)
		mustRelease(t, recipetest.Granted(t, done))
	}, zkenv.Only("its times are exact in virtual time", zkenv.Embedded))
}

// TestMorePermitsWakeWhoWaits: CURATOR-75. A contender may wait for more permits than there are.
func TestMorePermitsWakeWhoWaits(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		c, path := env.Client(t), recipetest.Path(t)
		s := newSemaphore(t, c, path, 1, semaphore.WithPermitsAt(path+"-number"))
		held := mustAcquire(t, s, 1)
		recipetest.AwaitChildren(t, c, path+"/locks", 0)
		done := acquireLater(t.Context(), s, 3)
		recipetest.AwaitChildren(t, c, path+"/leases", 4)
		recipetest.Fails(t, "TryAcquire of 3 permits of 1", recipetest.Err(s.TryAcquire(t.Context(), 3)), lease.ErrHeld)
		setNumber(t, c, path+"-number", 4)
		env.Quiesce()
		if env.Kind().Virtual() && len(done) == 0 {
			t.Error("the greater number woke no contender: it waits for its next check")
		}
		mustRelease(t, recipetest.Granted(t, done), held)
	})
}

// TestACorruptNumberGrantsNothing: nothing is granted, and nothing is overwritten.
func TestACorruptNumberGrantsNothing(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		c, path := env.Client(t), recipetest.Path(t)
		s := newSemaphore(t, c, path, 1, semaphore.WithPermitsAt(path+"-number"))
		mustRelease(t, mustAcquire(t, s, 1))
		must.Get(c.CreateOrSet(t.Context(), path+"-number", []byte("12345678")))(t)
		recipetest.Fails(t, "Acquire", recipetest.Err(s.Acquire(t.Context(), 1)), semaphore.ErrCorrupt)
		recipetest.Fails(t, "TryAcquire", recipetest.Err(s.TryAcquire(t.Context(), 1)), semaphore.ErrCorrupt)
		recipetest.Fails(t, "Participants", recipetest.Err(s.Participants(t.Context())), semaphore.ErrCorrupt)
		recipetest.AwaitChildren(t, c, path+"/leases", 0)
		recipetest.AwaitChildren(t, c, path+"/locks", 0)
		if data, _, err := c.Get(t.Context(), path+"-number"); err != nil || string(data) != "12345678" {
			t.Errorf("number %q, %v; want it unchanged", data, err)
		}
	})
}

// TestTheNumberOfTheZnodeCounts has a process with another number of its own: the
// number in the znode counts.
func TestTheNumberOfTheZnodeCounts(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		c, path := env.Client(t), recipetest.Path(t)
		first := newSemaphore(t, c, path, 2, semaphore.WithPermitsAt(path+"-number"))
		second := newSemaphore(t, env.Client(t), path, 9, semaphore.WithPermitsAt(path+"-number"))
		held := mustAcquire(t, first, 2)
		if _, err := second.TryAcquire(t.Context(), 1); !errors.Is(err, lease.ErrHeld) {
			t.Errorf("TryAcquire of a third permit of two: %v, want ErrHeld", err)
		}
		mustRelease(t, held)
	})
}

// TestTryAcquireAfterARelease: a release that another client has confirmed frees the permits for
// TryAcquire at once, even if its server lags behind the one that confirmed the release.
func TestTryAcquireAfterARelease(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		members, path := env.Members(), recipetest.Path(t)
		first := newSemaphore(t, members[0].Client(t), path, 1)
		second := newSemaphore(t, members[len(members)-1].Client(t), path, 1)
		for round := range 50 {
			mustRelease(t, mustAcquire(t, first, 1))
			l, err := second.TryAcquire(t.Context(), 1)
			if err != nil {
				t.Fatalf("round %d: TryAcquire of a free permit: %v", round, err)
			}
			mustRelease(t, l)
			first, second = second, first
		}
	}, zkenv.Only("a server has to lag", zkenv.EmbeddedEnsemble, zkenv.Ensemble))
}
