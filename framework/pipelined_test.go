package framework_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/testing/zkserver"
)

// Each create of one path has a listing of its own, taken after it, and a Stat of its own.
func TestCreatesOfOnePathAtOnce(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		const creates = 50
		c := virtual(t, srv)
		dir := fresh(t)
		mustCreate(t, c, dir, "")
		var wg sync.WaitGroup
		for range creates {
			wg.Go(func() {
				var names []string
				var st framework.Stat
				path, err := c.Create(t.Context(), dir+"/a-", nil, framework.Sequential(), framework.ListTo(&names), framework.StatTo(&st))
				if err != nil {
					t.Error(err)
					return
				}
				if !slices.Contains(names, strings.TrimPrefix(path, dir+"/")) {
					t.Errorf("%s is not in its own listing of %d names", path, len(names))
				}
				if _, read, err := c.Get(t.Context(), path); err != nil || read.Czxid != st.Czxid {
					t.Errorf("%s has czxid %d, its Stat says %d (%v)", path, read.Czxid, st.Czxid, err)
				}
			})
		}
		wg.Wait()
	})
}
