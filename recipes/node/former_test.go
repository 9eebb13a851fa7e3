package node_test

import (
	"context"
	"errors"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zktest"
)

// TestCloseLeavesAnotherClientsZnode: during an outage another client takes the path. Close, during the
// outage or right after it, deletes the Node's own znode or none.
func TestCloseLeavesAnotherClientsZnode(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		expired, early bool // the session ends in the outage; Close begins during it
	}{
		"the session outlives the outage":                  {},
		"the session outlives the outage, closed early":    {early: true},
		"the session ends during the outage":               {expired: true},
		"the session ends during the outage, closed early": {expired: true, early: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
				route, other, path := env.Route(t), env.Client(t), fresh()
				client := route.Client(t)
				n := kept(t, client, path, "ours")
				mustAwait(t, n)
				if c.expired {
					route.ExpireAndRefuse(t)
				} else {
					route.Refuse()
					route.Cut()
					must.OK(t, other.Delete(t.Context(), path))
				}
				zktest.Eventually(t, generous, "the outage", func() bool { return client.State() != framework.Connected })
				must.Get(other.Create(t.Context(), path, []byte("theirs"), framework.Ephemeral()))(t)
				closed := make(chan error, 1)
				closing := func() { closed <- n.Close(context.WithoutCancel(t.Context())) }
				if c.early {
					go closing()
					env.Quiesce()
				}
				route.Heal()
				if !c.early {
					closing()
				}
				if err := must.Receive(t, closed, "the end of Close"); err != nil && !errors.Is(err, framework.ErrSessionEnded) {
					t.Errorf("Close: %v", err)
				}
				env.Quiesce()
				mustHold(t, env.Client(t), other, path, "theirs")
			})
		})
	}
}
