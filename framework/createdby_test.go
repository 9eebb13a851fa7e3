package framework_test

import (
	"context"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zktest"
)

// TestCreatedByLeavesTheSuccessorAlone has the znode deleted and another created
// in its place while the reply to its deletion is lost.
func TestCreatedByLeavesTheSuccessorAlone(t *testing.T) {
	t.Parallel()
	server := zktest.Shared(t)
	proxy := zkproxy.Run(t, server.Addr())
	c, other := newClient(t, proxy.Addr()), newClient(t, server.Addr())
	for _, waits := range []bool{true, false} {
		path := fresh(t) + "-successor"
		var st framework.Stat
		mustCreate(t, c, path, "first", framework.StatTo(&st))
		lost := proxy.Rules().Add(fault.Rule{Op: fault.Delete, Path: path, Action: fault.HoldReply})
		ctx, cancel := context.WithCancel(t.Context())
		deleted := make(chan error, 1)
		go func() { deleted <- c.Delete(ctx, path, framework.CreatedBy(st.Czxid), framework.Guaranteed()) }()
		await(t, lost.Hit(), "the deletion")
		proxy.Refuse()
		proxy.Cut()
		if !waits {
			cancel()
			wantErr(t, "Delete", <-deleted, context.Canceled)
		}
		mustCreate(t, other, path, "second")
		proxy.Heal()
		if waits {
			if err := <-deleted; err != nil {
				t.Errorf("Delete: %v, want nil: the znode that was meant is gone", err)
			}
		}
		cancel()
		zktest.Eventually(t, patience, "the deletion is done", func() bool { return c.PendingDeletes() == 0 })
		if data, _, err := other.Get(t.Context(), path); err != nil || string(data) != "second" {
			t.Errorf("waiting %v: data %q, %v; want second", waits, data, err)
		}
	}
}

func TestDiscardCreatedBy(t *testing.T) {
	t.Parallel()
	c := newClient(t, zktest.Shared(t).Addr())
	path := fresh(t) + "-discard"
	var st framework.Stat
	mustCreate(t, c, path, "", framework.StatTo(&st))
	for _, step := range []struct {
		czxid  int64
		stands bool
	}{{st.Czxid - 1, true}, {st.Czxid, false}, {st.Czxid, false}} {
		c.Discard(path, framework.CreatedBy(step.czxid))
		zktest.Eventually(t, patience, "the deletion is done", func() bool { return c.PendingDeletes() == 0 })
		if _, ok, err := c.Exists(t.Context(), path); err != nil || ok != step.stands {
			t.Errorf("after Discard of czxid %d (the znode's is %d): exists %v, %v", step.czxid, st.Czxid, ok, err)
		}
	}
}
