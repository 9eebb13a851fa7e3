package zkenv

import (
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/testing/zkproxy"
)

// A Route is one that clients take to a server: a proxy, with all that this can do to
// them, that no other client shares. It is closed when the test has ended.
type Route struct {
	*zkproxy.Proxy
	member  *Member
	options []framework.Option
}

// Client returns a client that is connected by this way. When the test has ended, the route is healed
// and the client is closed.
func (y *Route) Client(t testing.TB, opts ...framework.Option) *framework.Client {
	t.Helper()
	c := y.member.env.connect(t, y.Addr(), append(y.options, opts...))
	t.Cleanup(y.Heal) // before Close, which returns an error if it can't reach a server
	return c
}

// Expire ends the sessions of the clients that are connected by this route, as though their time
// were over. It cuts the connections, and has the server end the sessions while no client can
// reconnect. Then it opens the route again, and heals its faults. The clients learn of it when
// they reconnect. Expire fails the test if no client is connected.
func (y *Route) Expire(t testing.TB) {
	t.Helper()
	y.ExpireAndRefuse(t)
	y.Heal()
}

// ExpireAndRefuse ends sessions as Expire does, and leaves the route closed until Heal.
func (y *Route) ExpireAndRefuse(t testing.TB) {
	t.Helper()
	sessions := y.Sessions()
	if len(sessions) == 0 {
		t.Fatal("zkenv: expire: nobody is connected")
	}
	y.Refuse()
	y.Cut()
	for _, s := range sessions {
		if err := y.member.env.host.expire(t.Context(), y.member.number, s); err != nil {
			t.Fatal(err)
		}
	}
}
