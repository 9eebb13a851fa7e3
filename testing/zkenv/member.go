package zkenv

import (
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/testing/zkproxy"
)

// A Member is one server of an environment. Its faults need [Breakable] and last until they
// are ended, or the test has.
type Member struct {
	env    *Env
	number int
}

// Client returns a client that is connected to this member alone, and is closed when
// the test has ended.
func (m *Member) Client(t testing.TB, opts ...framework.Option) *framework.Client {
	t.Helper()
	host := m.env.host
	return m.env.connect(t, host.member(m.number), append(host.options(), opts...))
}

// Route returns a new way to this member, that can be harmed.
func (m *Member) Route(t testing.TB) *Route {
	t.Helper()
	proxy, opts := m.env.host.proxy(t, m.number)
	return &Route{Proxy: proxy, member: m, options: opts}
}

// Freeze stops the server in its tracks, as SIGSTOP does: connections stand and nothing
// is answered. The others, if there are any, go on.
func (m *Member) Freeze(t testing.TB) {
	t.Helper()
	m.mustBreak(t)
	if err := m.env.host.freeze(m.number); err != nil {
		t.Fatal(err)
	}
}

// Thaw lets a frozen server go on where it was, with its clock ahead. It may be called
// on any goroutine.
func (m *Member) Thaw(t testing.TB) {
	t.Helper()
	if err := m.env.host.thaw(m.number); err != nil {
		t.Error(err)
	}
}

// Isolate cuts the member off from the others, while its clients reach it as before:
// it answers reads and pings from what it has, and neither writes nor syncs. It
// fails the test where there are no others.
func (m *Member) Isolate(t testing.TB) {
	t.Helper()
	m.mustBreak(t)
	if m.env.kind.Members() == 1 {
		t.Fatalf("zkenv: isolate: the environment must be an ensemble, and is %v", m.env.kind)
	}
	if err := m.env.host.isolate(m.number); err != nil {
		t.Fatal(err)
	}
}

// Heal ends what Isolate began.
func (m *Member) Heal() { m.env.host.heal(m.number) }

// Restart kills the server, starts it again with its data and returns when it serves
// clients. A member of an ensemble serves clients once it has found a leader. It may be
// called on any goroutine.
func (m *Member) Restart(t testing.TB) {
	t.Helper()
	if !m.env.cfg.breakable {
		t.Error("zkenv: a member can be restarted only in a test that is Breakable")
		return
	}
	if err := m.env.host.restart(t.Context(), m.number); err != nil {
		t.Error(err)
	}
}

func (m *Member) mustBreak(t testing.TB) {
	t.Helper()
	if !m.env.cfg.breakable {
		t.Fatal("zkenv: a member can be broken only in a test that is Breakable: the others share it")
	}
}

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
