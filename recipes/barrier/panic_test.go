package barrier_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
)

func TestPanicInEnterLeavesNoMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zkserver.Run(t, zkenv.DrawVersion(t)...)
		c, err := framework.NewClient(srv.Addr(), framework.WithDialer(srv.Dial), framework.WithACLProvider(func(path string) []acl.Entry {
			if strings.HasSuffix(path, "/ready") {
				panic("no ACL")
			}
			return acl.Open()
		}))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		d := must.Get(barrier.NewDouble(c, "/double", 1))(t)
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic did not reach the caller")
				}
			}()
			_, _ = d.Enter(t.Context())
		}()
		synctest.Wait()
		if names, _, err := c.Children(t.Context(), "/double"); err != nil || len(names) > 0 {
			t.Errorf("the barrier has %q, %v after a panic", names, err)
		}
	})
}
