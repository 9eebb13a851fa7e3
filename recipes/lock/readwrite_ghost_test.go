package lock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zktest"
)

// A ghostCase is one way of asking for a side: how decides which requests there are.
type ghostCase struct {
	ours, others func(rw *lock.RWMutex) *lock.Side // what the caller, and what somebody else, has before; nil for nothing
	side         func(rw *lock.RWMutex) *lock.Side
}

// TestNoGhostOfAReadWriteLock withholds or loses each reply of an acquire in
// turn, ends ctx at that moment, and lets go.
func TestNoGhostOfAReadWriteLock(t *testing.T) {
	t.Parallel()
	server := zktest.Shared(t)
	for name, tt := range map[string]ghostCase{
		"a reader alone":           {side: (*lock.RWMutex).Read},
		"a reader among readers":   {others: (*lock.RWMutex).Read, side: (*lock.RWMutex).Read},
		"a reader behind a writer": {others: (*lock.RWMutex).Write, side: (*lock.RWMutex).Read},
		"a writer behind a reader": {others: (*lock.RWMutex).Read, side: (*lock.RWMutex).Write},
		"a downgrade":              {ours: (*lock.RWMutex).Write, side: (*lock.RWMutex).Read},
	} {
		for _, action := range []fault.Action{fault.HoldReply, fault.DropReply} {
			for n := range 4 {
				t.Run(fmt.Sprintf("%s/%v/request %d", name, action, n), func(t *testing.T) {
					t.Parallel()
					path := anyPath(fmt.Sprintf("/rwghost/%x-%v-%d", name, action, n))
					tt.run(t, server, path, fault.Rule{Action: action, Skip: n})
				})
			}
		}
	}
}

func (g ghostCase) run(t *testing.T, server *zktest.Server, path string, rule fault.Rule) {
	t.Helper()
	observer := newClient(t, server.Addr())
	client, proxy := behindProxy(t, server)
	rw := newReadWrite(t, client, path)
	one := asOwner(t, "one")
	stay := 0
	if g.others != nil {
		mustLockAs(asOwner(t, "other"), t, g.others(newReadWrite(t, observer, path)))
		stay++
	}
	if g.ours != nil {
		mustLockAs(one, t, g.ours(rw))
		stay++
	}

	rule.Path = path + "/**"
	below := proxy.Rules().Add(rule)
	rule.Op, rule.Path = fault.GetChildren, path
	list := proxy.Rules().Add(rule)
	ctx, cancel := context.WithCancel(one)
	defer cancel()
	done := lockLater(ctx, g.side(rw))
	var got result
	select {
	case <-below.Hit():
	case <-list.Hit():
	case got = <-done:
	case <-time.After(300 * time.Millisecond): // it needs fewer requests than are skipped
	}
	cancel()
	if got.lease == nil && got.err == nil {
		got = receive(t, done, "Lock's return after its context ended")
	}
	for _, rule := range []*fault.Handle{below, list} {
		rule.Remove()
		rule.Release()
	}
	switch {
	case got.err == nil:
		mustRelease(t, got.lease)
	case !errors.Is(got.err, context.Canceled):
		t.Errorf("error %v, want one that matches context.Canceled", got.err)
	}
	awaitContenders(t, observer, path, stay)
}
