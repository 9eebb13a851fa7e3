package execute_test

import (
	"strings"
	"testing"

	"github.com/docent-go/docent/cmd/docent/internal/apptest"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
)

// Another client asks for the lock, or deletes the holder's znode.
func TestRevoke_and_deletion(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	c := apptest.Client(t, addr)
	revoke := func(node string) error { return lock.Revoke(t.Context(), c, node) }
	remove := func(node string) error { return c.Delete(t.Context(), node) }
	for name, c := range map[string]struct {
		flags   []string
		act     func(node string) error
		code    int
		outcome string
		reason  string
	}{
		"revoked":                {[]string{"--revocable"}, revoke, 143, "revoked", "revoked"},
		"leader revoked":         {[]string{"--leader", "--revocable"}, revoke, 143, "revoked", "revoked"},
		"deleted":                {nil, remove, 121, "lost", "node_deleted"},
		"deleted, with a signal": {[]string{"--on-lost-signal", "TERM"}, remove, 121, "lost", "node_deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := "/revoke/" + strings.NewReplacer(" ", "-", ",", "").Replace(name)
			p, node := begin(t, addr, "$DOCENT_NODE", "exec sleep 60", append(c.flags, path)...)
			must.OK(t, c.act(node))
			status := p.concludes(t, name, c.code, c.outcome, c.reason)
			signal := "KILL"
			if c.outcome == "revoked" || len(c.flags) > 0 {
				signal = "TERM"
			}
			if status.Child.Signal == nil || *status.Child.Signal != signal {
				t.Errorf("the command ended by %v, want %s", status.Child, signal)
			}
		})
	}
}
