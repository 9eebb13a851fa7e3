package zktest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/freeport"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zktest"
)

// An owner that is not kept from it reconnects as fast as it can, and may win more than once.
func TestKilledSessionIsGone(t *testing.T) {
	t.Parallel()
	server := zktest.Shared(t)
	for _, held := range []bool{true, false} {
		t.Run(fmt.Sprintf("owner held back %v", held), func(t *testing.T) {
			t.Parallel()
			proxy, path := zkproxy.Run(t, server.Addr()), fmt.Sprintf("/killed-%v", held)
			conn := connect(t, proxy)
			create(t, conn, path, zk.FlagEphemeral)
			watcher := connect(t, server)
			id, password := conn.SessionID(), proxy.Sessions()[0].Password
			if got := ephemerals(t, server)[id]; !slices.Equal(got, []string{path}) {
				t.Fatalf("ephemeral nodes of the session = %q; want %s", got, path)
			}

			if held {
				proxy.Refuse()
			}
			must.OK(t, zktest.KillSession(t.Context(), server.Addr(), id, password))
			if ok, _, err := watcher.Exists(path); ok || err != nil {
				t.Errorf("ephemeral node of a killed session: %v, %v; want it gone", ok, err)
			}
			if got, ok := ephemerals(t, server)[id]; ok {
				t.Errorf("ephemeral nodes of a killed session = %q; want none", got)
			}
			proxy.Heal()
			zktest.Eventually(t, soon, "the owner has a new session", func() bool {
				return conn.State() == zk.StateHasSession && conn.SessionID() != id
			})
			if err := zktest.KillSession(t.Context(), server.Addr(), id, password); !errors.Is(err, zktest.ErrNoSession) {
				t.Errorf("second KillSession() = %v; want ErrNoSession", err)
			}
		})
	}
}

func TestKillSessionRefusesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	server := zktest.Shared(t)
	proxy := zkproxy.Run(t, server.Addr())
	conn := connect(t, proxy)
	id, password := conn.SessionID(), proxy.Sessions()[0].Password
	wrong := slices.Clone(password)
	wrong[0]++
	if err := zktest.KillSession(t.Context(), server.Addr(), id, wrong); !errors.Is(err, zktest.ErrNoSession) {
		t.Errorf("with a wrong password = %v; want ErrNoSession", err)
	}
	zktest.Eventually(t, soon, "the owner is back with its session", func() bool {
		_, _, err := conn.Exists("/")
		return err == nil && conn.SessionID() == id
	})
	if err := zktest.KillSession(t.Context(), server.Addr(), 0, password); err == nil {
		t.Error("session 0: want an error")
	}
	ctx := deadline(t, 100*time.Millisecond)
	if err := zktest.KillSession(ctx, freeport.Addr(t), id, password); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with no server = %v; want the context's error", err)
	}
}

func ephemerals(t testing.TB, server *zktest.Server) map[int64][]string {
	t.Helper()
	return must.Get(server.Ephemerals(t.Context()))(t)
}
