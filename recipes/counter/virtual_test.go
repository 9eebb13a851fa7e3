package counter_test

import (
	"testing"
	"testing/synctest"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
)

// virtually is an embedded server in virtual time, with a client.
type virtually struct {
	server *zkserver.Server
	client *framework.Client
}

func virtual(t *testing.T, body func(t *testing.T, v *virtually)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		v := &virtually{server: zkserver.Run(t, zkenv.DrawVersion(t)...)}
		v.client = v.another(t)
		body(t, v)
	})
}

// another returns one more client.
func (v *virtually) another(t testing.TB) *framework.Client {
	t.Helper()
	return recipetest.Client(t, v.server.Addr(), framework.WithDialer(v.server.Dial))
}

func (v *virtually) setVersion(t testing.TB, path string, version int32) {
	t.Helper()
	must.OK(t, v.server.SetVersion(path, version))
}
