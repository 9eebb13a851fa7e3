package execute_test

import (
	"strings"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
)

// Another client asks for the lock, or deletes the holder's znode.
func TestRevoke_and_deletion(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	c := must.Get(framework.NewClient(addr))(t)
	t.Cleanup(func() { _ = c.Close() })
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
			node := tempFile(t)
			path := "/revoke/" + strings.NewReplacer(" ", "-", ",", "").Replace(name)
			p := start(t, addr, append(c.flags, path, "--", "sh", "-c", "echo $DOCENT_NODE >"+quoted(node)+"; exec sleep 60")...)
			must.OK(t, c.act(await(t, node)))
			code, status := p.end(t), p.readStatus(t)
			if code != c.code || status.Outcome != c.outcome || status.Reason != c.reason {
				t.Errorf("exit code %d, want %d; status %+v\n%s", code, c.code, status, p.err.String())
			}
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
