package chaos_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/lab/history"
	"github.com/docent-go/docent/testing/zktest"
)

// outages tells which outages were longer than the client's session. The client's changes of state come one
// after another.
type outages struct{ began time.Time } // zero while the client is connected

// change reports whether an outage longer than a session ends with the state.
func (o *outages) change(to framework.State, session time.Duration, at time.Time) (met bool) {
	switch {
	case to == framework.Connected:
		met = !o.began.IsZero() && at.Sub(o.began) > session
		o.began = time.Time{}
	case to == framework.Suspended && o.began.IsZero():
		o.began = at
	}
	return met
}

// metOutage counts outages that were longer than a session.
const metOutage = "met an outage longer than its session"

// changed is called with every change of the client's state.
func (w *worker) changed(c framework.StateChange) {
	if w.outages.change(c.To, w.Session, time.Now()) {
		w.did(metOutage)
	}
}

// outageName is the fault that all workers meet.
const outageName = "outage longer than a session, all servers killed"

// outageFaults have all clients without any server for longer than the longest session lasts. Servers
// that are killed or frozen give each session its full time again; those that are cut off from their
// clients let them expire.
func (r *run) outageFaults() []fault {
	faults := []fault{
		r.outage(outageName, (*zktest.Server).Kill),
		r.outage("outage longer than a session, all servers frozen", (*zktest.Server).Freeze),
	}
	if r.namespaces {
		faults = append(faults, r.outage("outage longer than a session, all clients cut off", r.ensemble.CutClients))
	}
	return faults
}

func (r *run) outage(name string, do func(s *zktest.Server) error) fault {
	return fault{name, func(ctx context.Context, d dice) done {
		f := done{whom: "all servers", from: history.Monotonic()}
		var all sync.WaitGroup
		for _, s := range r.ensemble.Servers {
			all.Go(func() { r.fail(do(s)) })
		}
		all.Wait()
		pause(ctx, longestSession+d.between(moment, while))
		f.to = history.Monotonic()
		r.repair()
		return f
	}}
}

func TestOutagesLongerThanASessionAreMet(t *testing.T) {
	t.Parallel()
	at := time.Now()
	for length, want := range map[time.Duration]bool{5 * time.Second: true, 3 * time.Second: false} {
		var o outages
		o.change(framework.Suspended, 4*time.Second, at)
		o.change(framework.Lost, 4*time.Second, at.Add(4*time.Second))
		if met := o.change(framework.Connected, 4*time.Second, at.Add(length)); met != want {
			t.Errorf("after %v: met %v, want %v", length, met, want)
		}
	}
}
