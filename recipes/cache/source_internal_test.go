package cache

import (
	"testing"
	"testing/synctest"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zkserver"
)

// When a whole tree is deleted, all watches fire. What is below the root may be read again before the
// root is, and then there is no watch. The source is valid nevertheless: the events say what to read.
func TestASourceWhoseWatchesHaveAllFiredIsValid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zkserver.Run(t)
		c := must.Get(framework.NewClient(srv.Addr(), framework.WithDialer(srv.Dial)))(t)
		defer c.Close()
		for _, path := range []string{"/root", "/root/a"} {
			must.Get(c.Create(t.Context(), path, nil))(t)
		}
		s := must.Get(watchEach(t.Context(), c, "/root"))(t)
		defer s.Close()
		if s.Valid() {
			t.Error("valid before its first Read")
		}
		read := func(paths ...string) {
			t.Helper()
			s.Read(t.Context(), paths)
			s.List(t.Context(), paths)
		}
		read("/root", "/root/a")
		must.OK(t, c.DeleteTree(t.Context(), "/root"))
		synctest.Wait()
		if changes := must.Get(s.Next(t.Context()))(t); len(changes) == 0 {
			t.Fatal("no changes")
		}
		read("/root/a")
		if !s.Valid() {
			t.Error("not valid, and nothing notifies of the contrary")
		}
		read("/root")
		if !s.Valid() {
			t.Error("not valid after the root was read")
		}
		srv.Cut()
		synctest.Wait()
		if s.Valid() {
			t.Error("valid after the connection was lost")
		}
	})
}
