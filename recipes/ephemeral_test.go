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
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkserver"
)

// Below an ephemeral znode every recipe that creates says which one that is. No znode can be below it.
func TestBelowAnEphemeralAncestor(t *testing.T) {
	t.Parallel()
	for above, view := range map[string]string{"its parent": "in", "further up": "in/deep"} {
		for _, s := range append(recipeSubjects, frameworkSubjects...) {
			t.Run(s.name+", "+above, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := zkserver.Run(t)
					root := clientOf(t, srv.Addr(), framework.WithDialer(srv.Dial))
					must.Get(root.Create(t.Context(), "/in", nil, framework.Ephemeral()))(t)
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					h, err := s.open(t, must.Get(root.Namespace(view))(t))(ctx)
					if h != nil && h.end != nil {
						must.OK(t, h.end(t.Context()))
					}
					refused := new(framework.OpError)
					switch {
					case s.readOnly: // it creates nothing
						must.OK(t, err)
					case !errors.As(err, &refused) || refused.Code() != -108, errors.Is(err, lock.ErrMixed),
						strings.Count(err.Error(), ": ephemeral znodes have no children: /in is one") != 1:
						t.Errorf("%v, want the server's refusal, that names /in", err)
					}
				})
			})
		}
	}
}
