package recipes_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/testing/zkserver"
)

// views are the views of a client, each with its root in the ensemble.
var views = map[string]func(t *testing.T, addr string, opts ...framework.Option) (c *framework.Client, root string){
	"plain": func(t *testing.T, addr string, opts ...framework.Option) (*framework.Client, string) {
		return clientOf(t, addr, opts...), ""
	},
	"chroot": func(t *testing.T, addr string, opts ...framework.Option) (*framework.Client, string) {
		return clientOf(t, addr+"/app", opts...), "/app"
	},
	"namespace": func(t *testing.T, addr string, opts ...framework.Option) (*framework.Client, string) {
		return must.Get(clientOf(t, addr, opts...).Namespace("app"))(t), "/app"
	},
	"namespace in a namespace": func(t *testing.T, addr string, opts ...framework.Option) (*framework.Client, string) {
		return must.Get(must.Get(clientOf(t, addr, opts...).Namespace("app"))(t).Namespace("part"))(t), "/app/part"
	},
}

func clientOf(t *testing.T, addr string, opts ...framework.Option) *framework.Client {
	t.Helper()
	c := must.Get(framework.NewClient(addr, append([]framework.Option{framework.WithSessionTimeout(10 * time.Second)}, opts...)...))(t)
	t.Cleanup(func() { _ = c.Close() }) // a test may have closed it, or taken its server away
	return c
}

// wantEnsemblePaths fails the test if the error does not name a path below root, or names one of the view.
func wantEnsemblePaths(t *testing.T, err error, root string) {
	t.Helper()
	text := err.Error()
	if !strings.Contains(text, root+at) || strings.Contains(strings.ReplaceAll(text, root+at, "."), " "+at) {
		t.Errorf("%q: all paths must be the ensemble's, below %q", text, root)
	}
	lost, wait := new(lease.LostError), new(lease.WaitError)
	if errors.As(err, &lost) && (!strings.HasPrefix(lost.Path, at) || !strings.HasPrefix(lost.AbsolutePath, root+at)) {
		t.Errorf("a LostError of %q, and of %q in the ensemble", lost.Path, lost.AbsolutePath)
	}
	if errors.As(err, &wait) && (!strings.HasPrefix(wait.Path, at) || !strings.HasPrefix(wait.AbsolutePath, root+at)) {
		t.Errorf("a WaitError of %q, and of %q in the ensemble", wait.Path, wait.AbsolutePath)
	}
}

// TestErrorsOfRecipesNameThePathInTheEnsemble has the call of each recipe fail in each view: because
// another client has what it wants, because its znode is deleted, and because its client is closed.
func TestErrorsOfRecipesNameThePathInTheEnsemble(t *testing.T) {
	t.Parallel()
	for view, of := range views {
		for _, s := range recipeSubjects {
			t.Run(s.name+", "+view, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := zkserver.Run(t)
					c, root := of(t, srv.Addr(), framework.WithDialer(srv.Dial))
					other, _ := of(t, srv.Addr(), framework.WithDialer(srv.Dial))
					must.Get(c.Create(t.Context(), "/", nil, framework.WithParents(), framework.Idempotent()))(t)
					if s.alone {
						held, err := s.open(t, other)(t.Context())
						must.OK(t, err)
						ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
						h, err := s.open(t, c)(ctx)
						cancel()
						wantEnsemblePaths(t, err, root)
						if h != nil {
							must.OK(t, h.end(t.Context()))
						}
						must.OK(t, held.end(t.Context()))
					}
					if h, err := s.open(t, c)(t.Context()); err != nil {
						t.Error(err)
					} else if h != nil && h.lease != nil {
						must.OK(t, other.Delete(t.Context(), nodeOf(h.lease)))
						<-h.lease.Lost()
						if !s.keeps { // else it may have been released since
							wantEnsemblePaths(t, h.lease.Err(), root)
						}
						if err := h.end(t.Context()); err != nil {
							wantEnsemblePaths(t, err, root)
						}
					} else if h != nil {
						must.OK(t, h.end(t.Context()))
					}
					must.OK(t, c.Close())
					h, err := s.open(t, c)(t.Context())
					wantEnsemblePaths(t, err, root)
					if h != nil {
						_ = h.end(t.Context()) // its client is closed
					}
				})
			})
		}
	}
}
