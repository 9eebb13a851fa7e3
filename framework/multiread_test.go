package framework_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkserver"
)

// readers are servers of the oldest and the newest version.
func readers() map[string][]zkserver.Option {
	return map[string][]zkserver.Option{
		"3.6.0": {zkserver.WithVersion("3.6.0")},
		"3.9.6": {zkserver.WithVersion("3.9.6")},
	}
}

// A request is no longer than a server accepts.
func TestGetEach_of_long_paths(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtual(t, srv, framework.WithMaxPacket(framework.MinPacket, framework.DefaultMaxReply))
		requests := srv.Rules().Add(fault.Rule{Op: fault.MultiRead, Action: fault.Pass, Times: fault.Forever})
		must.Get2(c.Get(t.Context(), "/"))(t) // shows how long the data are
		long := "/" + strings.Repeat("x", framework.MinPacket/4)
		_, errs := c.GetEach(t.Context(), slices.Repeat([]string{long}, 8)...)
		for _, err := range errs {
			wantErr(t, "a path that does not exist", err, framework.ErrNoNode)
		}
		if n := requests.Hits(); n != 3 { // three, three, and two
			t.Errorf("%d requests, want 3", n)
		}
	})
}

// Create lists directories that do not exist as empty: the listing was answered.
func TestListTo_of_several_directories(t *testing.T) {
	for name, opts := range readers() {
		runSynctest(t, name, func(t *testing.T) {
			c := virtual(t, zkserver.Run(t, opts...))
			mustCreate(t, c, "/a/b", "", framework.WithParents())
			mustCreate(t, c, "/empty", "")
			var parent, empty, none []string
			mustCreate(t, c, "/a/c-", "", framework.Ephemeral(), framework.Sequential(), framework.Protected(),
				framework.ListTo("", &parent), framework.ListTo("/empty", &empty), framework.ListTo("/none", &none))
			if len(parent) < 2 || empty == nil || len(empty) != 0 || none == nil || len(none) != 0 {
				t.Errorf("listed %q, %#v and %#v", parent, empty, none)
			}
			var only []string
			mustCreate(t, c, "/a/d-", "", framework.Ephemeral(), framework.Sequential(), framework.ListTo("/none", &only))
			if only == nil || len(only) != 0 {
				t.Errorf("listed %#v, want nothing", only)
			}
		})
	}
}
