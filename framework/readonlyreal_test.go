package framework_test

import (
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zktest"
)

func TestReadOnlyOfARealServer(t *testing.T) {
	t.Parallel()
	e := zktest.RunEnsemble(t, 3, zktest.WithJVMFlags("-Dreadonlymode.enabled=true"),
		zktest.WithSetting("localSessionsEnabled", "true"), zktest.WithSetting("localSessionsUpgradingEnabled", "true"))
	var seen trail
	c := newClient(t, e.Addr(), framework.WithSessionTimeout(40*time.Second), framework.WithReadOnly(),
		framework.WithStateListener(seen.add))
	path := mustCreate(t, c, fresh(t), "data", framework.Ephemeral())
	h := mustHold(t, c)
	id := c.Session().ID
	for _, s := range e.Servers[:2] {
		must.OK(t, s.Kill())
	}
	awaitState(t, c, framework.ReadOnly)
	if got, st, err := c.Get(t.Context(), path); err != nil || string(got) != "data" || st.EphemeralOwner != id {
		t.Errorf("read %q of %#x, %v", got, st.EphemeralOwner, err)
	}
	wantErr(t, "delete", c.Delete(t.Context(), path), framework.ErrReadOnly)
	wantErr(t, "sync", c.Sync(t.Context(), "/"), framework.ErrReadOnly)
	must.OK(t, e.Servers[0].Restart(t.Context()))
	awaitState(t, c, connected)
	if err := h.Err(); err == nil { // a machine that is slow may have taken longer than the session timeout
		if err := c.Delete(t.Context(), path); err != nil {
			t.Error(err)
		}
	}
	if n := countOf(seen.states(), framework.ReadOnly); n != 1 {
		t.Errorf("states %v: ReadOnly %d times, want once", seen.states(), n)
	}
}
