package framework_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
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

// Each of several reads has the outcome that it would have alone.
func TestGetEach_reads_as_Get_does(t *testing.T) {
	for name, opts := range readers() {
		runSynctest(t, name, func(t *testing.T) {
			srv := zkserver.Run(t, opts...)
			c := virtual(t, srv, framework.WithMaxPacket(framework.MinPacket, framework.MinPacket))
			writer := virtual(t, srv)
			paths := []string{"/none", "/secret", "/large", "/empty", "/null"}
			must.Get(writer.Create(t.Context(), "/secret", []byte("s"), framework.WithACL(acl.Entry{Perms: acl.All, Scheme: "digest", ID: "u:h"})))(t)
			mustCreate(t, writer, "/large", strings.Repeat("x", framework.MinPacket))
			mustCreate(t, writer, "/empty", "")
			must.OK(t, framework.CreateUnchecked(writer, "/null"))
			for i := range 150 {
				paths = append(paths, mustCreate(t, writer, fmt.Sprintf("/%d", i), strings.Repeat("x", framework.MinPacket/2)))
			}
			reads, errs := c.GetEach(t.Context(), paths...)
			for i, path := range paths {
				data, stat, err := c.Get(t.Context(), path)
				if string(reads[i].Data) != string(data) || (reads[i].Data == nil) != (data == nil) || reads[i].Stat != stat {
					t.Errorf("%s: %d bytes, %+v; want %d, %+v", path, len(reads[i].Data), reads[i].Stat, len(data), stat)
				}
				if fmt.Sprint(errors.Unwrap(errs[i])) != fmt.Sprint(errors.Unwrap(err)) && !errors.Is(err, framework.ErrTooLarge) {
					t.Errorf("%s: %v, want %v", path, errs[i], err)
				}
			}
			wantErr(t, "/none", errs[0], framework.ErrNoNode)
			wantErr(t, "/secret", errs[1], framework.ErrNoAuth)
			wantErr(t, "/large", errs[2], framework.ErrTooLarge)
		})
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
