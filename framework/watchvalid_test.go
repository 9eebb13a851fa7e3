package framework_test

import (
	"testing"
	"testing/synctest"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zkserver"
)

func TestWatchIsValid(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		then  func(t *testing.T, srv *zkserver.Server, c *framework.Client, w *framework.Watch)
		valid bool
	}{
		"while nothing happens": {func(*testing.T, *zkserver.Server, *framework.Client, *framework.Watch) {}, true},
		"until it fires": {func(t *testing.T, _ *zkserver.Server, c *framework.Client, _ *framework.Watch) {
			if err := c.Delete(t.Context(), "/watched"); err != nil {
				t.Error(err)
			}
		}, false},
		"until it is closed": {func(_ *testing.T, _ *zkserver.Server, _ *framework.Client, w *framework.Watch) {
			w.Close()
		}, false},
		"until its connection is lost, before it fires for that": {
			func(t *testing.T, srv *zkserver.Server, _ *framework.Client, w *framework.Watch) {
				srv.Refuse()
				srv.Cut()
				synctest.Wait()
				if w.Event() != 0 {
					t.Errorf("fired already: %v", w.Event())
				}
			}, false,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			virtually(t, func(t *testing.T, srv *zkserver.Server) {
				c := virtual(t, srv)
				must.Get(c.Create(t.Context(), "/watched", nil))(t)
				w := mustWatch(t, c, "/watched", framework.WatchData)
				tc.then(t, srv, c, w)
				if w.Valid() != tc.valid {
					t.Errorf("valid: %v, want %v", w.Valid(), tc.valid)
				}
				srv.Accept()
			})
		})
	}
}
