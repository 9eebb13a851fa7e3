package zkenv

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// embedded is the host of a bubble.
type embedded struct{ server *zkserver.Server }

// newEmbedded starts a server with the timings of package zktest's.
func newEmbedded(t testing.TB, kind Kind, version string) host {
	t.Helper()
	return embedded{zkserver.Run(t,
		zkserver.WithVersion(version),
		zkserver.WithFrontends(kind.Members()),
		zkserver.WithTick(zktest.DefaultTickTime),
		zkserver.WithSessionTimeouts(zktest.DefaultMinSessionTimeout, zktest.DefaultMaxSessionTimeout),
		zkserver.WithReapInterval(zktest.DefaultContainerInterval))}
}

func (e embedded) connect() string { return e.server.Addr() }

func (e embedded) member(i int) string { return e.server.Frontend(i).Addr() }

func (e embedded) options() []framework.Option {
	return []framework.Option{framework.WithDialer(e.server.Dial)}
}

func (e embedded) proxy(t testing.TB, i int) (*zkproxy.Proxy, []framework.Option) {
	t.Helper()
	proxy := zkproxy.RunPipe(t, func(ctx context.Context) (net.Conn, error) {
		return e.server.Dial(ctx, "tcp", e.member(i))
	})
	proxy.SetLatency(Latency)
	return proxy, []framework.Option{framework.WithDialer(proxy.Dial)}
}

func (e embedded) expire(_ context.Context, _ int, s zkproxy.Session) error {
	return e.server.Expire(s.ID)
}

func (e embedded) ephemerals(_ context.Context, session int64) ([]string, error) {
	for _, s := range e.server.Sessions() {
		if s.ID == session {
			return s.Ephemerals, nil
		}
	}
	return nil, nil
}

// freeze stops a standalone server as a whole: sessions expire elsewhere only where
// there is another member.
func (e embedded) freeze(i int) error {
	if len(e.server.Frontends()) == 1 {
		e.server.Freeze()
	} else {
		e.server.Frontend(i).Freeze()
	}
	return nil
}

func (e embedded) thaw(i int) error {
	if len(e.server.Frontends()) == 1 {
		e.server.Thaw()
	} else {
		e.server.Frontend(i).Thaw()
	}
	return nil
}

func (e embedded) isolate(i int) error { e.server.Frontend(i).Isolate(); return nil }

func (e embedded) restart(context.Context, int) error {
	return errors.New("zkenv: restart: an embedded server cannot be restarted")
}

func (e embedded) heal(i int) { e.server.Frontend(i).Heal() }
