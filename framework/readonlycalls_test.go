package framework_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zktest"
)

// refusals are calls that take a quorum.
func refusals(c *framework.Client) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"create": func(ctx context.Context) error { _, err := c.Create(ctx, "/new", nil); return err },
		"create protected": func(ctx context.Context) error {
			_, err := c.Create(ctx, "/new", nil, framework.Protected(), framework.Ephemeral())
			return err
		},
		"create all": func(ctx context.Context) error {
			_, err := c.CreateAll(ctx, framework.OpCreate("/new", nil, framework.Ephemeral(), framework.Protected()))
			return err
		},
		"set":         func(ctx context.Context) error { _, err := c.Set(ctx, "/", nil, framework.AnyVersion); return err },
		"delete":      func(ctx context.Context) error { return c.Delete(ctx, "/new") },
		"delete tree": func(ctx context.Context) error { return c.DeleteTree(ctx, "/new") },
		"set ACL": func(ctx context.Context) error {
			_, err := c.SetACL(ctx, "/", acl.Open(), framework.AnyVersion)
			return err
		},
		"transaction": func(ctx context.Context) error { _, err := c.Txn(ctx, framework.OpCheck("/", 0)); return err },
		"sync":        func(ctx context.Context) error { return c.Sync(ctx, "/") },
		"config":      func(ctx context.Context) error { _, err := c.Config(ctx); return err },
		"ephemerals":  func(ctx context.Context) error { _, err := c.Ephemerals(ctx, "/"); return err },
		"hold":        func(ctx context.Context) error { _, err := c.HoldSession(ctx); return err },
		"ready":       c.Ready,
	}
}

// servedReads are calls that a read-only server answers.
func servedReads(c *framework.Client) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"get":      func(ctx context.Context) error { _, _, err := c.Get(ctx, "/"); return err },
		"exists":   func(ctx context.Context) error { _, _, err := c.Exists(ctx, "/"); return err },
		"children": func(ctx context.Context) error { _, _, err := c.Children(ctx, "/"); return err },
		"ACL":      func(ctx context.Context) error { _, _, err := c.ACL(ctx, "/"); return err },
		"get each": func(ctx context.Context) error { _, errs := c.GetEach(ctx, "/"); return errors.Join(errs...) },
		"who am I": func(ctx context.Context) error { _, err := c.WhoAmI(ctx); return err },
		"watch": func(ctx context.Context) error {
			w, err := c.Watch(ctx, "/", framework.WatchData)
			if err == nil {
				w.Close()
			}
			return err
		},
		"watch each": func(ctx context.Context) error {
			_, errs := c.WatchEach(ctx, framework.WatchChildren, "/")
			return errors.Join(errs...)
		},
	}
}

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
