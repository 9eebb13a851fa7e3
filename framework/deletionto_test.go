package framework_test

import (
	"context"
	"strings"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
)

// TestDeletionTo: the channel is closed when the znode of a create that was withdrawn is gone, or the
// client has stopped its deletion. A create that leaves nothing behind has no channel.
func TestDeletionTo(t *testing.T) {
	t.Parallel()
	for name, opt := range map[string]framework.CreateOption{"protected": framework.Protected(), "known by data": framework.KnownByData()} {
		for _, closes := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", the client is closed"}[closes], func(t *testing.T) {
				t.Parallel()
				zkenv.ForEach(t, func(t *testing.T, e *zkenv.Env) {
					route, path := e.Route(t), fresh(t)+"-deletion"
					c := route.Client(t)
					over := make(<-chan struct{})
					opts := []framework.CreateOption{framework.Ephemeral(), opt, framework.DeletionTo(&over)}
					created := must.Get(c.Create(t.Context(), path, nil, opts...))(t)
					if over != nil {
						t.Error("a channel, although Create has succeeded")
					}
					must.OK(t, c.Delete(t.Context(), created))
					held := route.Rules().Add(fault.Rule{Op: fault.Create, Action: fault.HoldReply})
					ctx, cancel := context.WithCancel(t.Context())
					go func() { <-held.Hit(); cancel() }()
					if _, err := c.Create(ctx, path, nil, opts...); err == nil || over == nil {
						t.Fatalf("a create that was withdrawn: %v; want an error, and a channel", err)
					}
					if closes {
						must.OK(t, c.Close())
						must.Receive(t, over, "the end of the deletion")
						return
					}
					select {
					case <-over:
						t.Error("the deletion is over before the create is")
					default:
					}
					held.Release()
					must.Receive(t, over, "the end of the deletion")
					names, _ := must.Get2(c.Children(t.Context(), "/"))(t)
					for _, name := range names {
						if strings.HasSuffix("/"+name, path) {
							t.Errorf("%s exists after the end of its deletion", name)
						}
					}
				}, zkenv.Only("nothing of it depends on the server", zkenv.Embedded, zkenv.Standalone))
			})
		}
	}
}
