package zkenv

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zktest"
)

// realServers is the host of an environment of real servers.
type realServers struct {
	ensemble *zktest.Ensemble // nil for a standalone server
	members  []*zktest.Server // followers first
}

// newReal returns the shared servers, or some for this test alone.
func newReal(t testing.TB, kind Kind, own bool) host {
	t.Helper()
	if kind == Standalone {
		if own {
			return realServers{members: []*zktest.Server{zktest.Run(t)}}
		}
		return realServers{members: []*zktest.Server{zktest.Shared(t)}}
	}
	var ensemble *zktest.Ensemble
	if own {
		ensemble = zktest.RunEnsemble(t, kind.Members())
	} else {
		ensemble = zktest.SharedEnsemble(t)
	}
	leader, err := ensemble.Leader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	followers := slices.DeleteFunc(slices.Clone(ensemble.Servers), func(s *zktest.Server) bool { return s == leader })
	return realServers{ensemble, append(followers, leader)}
}

func (r realServers) connect() string {
	addrs := make([]string, len(r.members))
	for i := range r.members {
		addrs[i] = r.member(i)
	}
	return strings.Join(addrs, ",")
}

func (r realServers) member(i int) string { return r.members[i].Addr() }

func (r realServers) options() []framework.Option { return nil }

func (r realServers) proxy(t testing.TB, i int) (*zkproxy.Proxy, []framework.Option) {
	t.Helper()
	return zkproxy.Run(t, r.member(i)), nil
}

func (r realServers) expire(ctx context.Context, i int, s zkproxy.Session) error {
	return zktest.KillSession(ctx, r.member(i), s.ID, s.Password)
}

func (r realServers) ephemerals(ctx context.Context, session int64) ([]string, error) {
	var paths []string
	for _, server := range r.members {
		bySession, err := server.Ephemerals(ctx)
		if err != nil {
			return nil, err
		}
		paths = append(paths, bySession[session]...)
	}
	slices.Sort(paths)
	return slices.Compact(paths), nil
}

func (r realServers) freeze(i int) error { return r.members[i].Freeze() }

func (r realServers) thaw(i int) error { return r.members[i].Thaw() }

func (r realServers) isolate(i int) error { return r.ensemble.Isolate(r.members[i]) }

func (r realServers) restart(ctx context.Context, i int) error { return r.members[i].Restart(ctx) }

func (r realServers) heal(i int) {
	if r.ensemble != nil {
		_ = r.ensemble.Heal(r.members[i]) // forwarders never fail
	}
}
