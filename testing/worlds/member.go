package worlds

import (
	"testing"

	"github.com/docent-go/docent/framework"
)

// A Member is one server of a world. Its faults need [Breakable] and last until they
// are ended, or the test has.
type Member struct {
	world  *World
	number int
}

// Client returns a client that is connected to this member alone, and is closed when
// the test has ended.
func (m *Member) Client(t testing.TB, opts ...framework.Option) *framework.Client {
	t.Helper()
	host := m.world.host
	return connect(t, host.member(m.number), append(host.options(), opts...))
}

// Way returns a new way to this member, that can be harmed.
func (m *Member) Way(t testing.TB) *Way {
	t.Helper()
	proxy, opts := m.world.host.proxy(t, m.number)
	return &Way{Proxy: proxy, member: m, options: opts}
}

// Freeze stops the server in its tracks, as SIGSTOP does: connections stand and nothing
// is answered. The others, if there are any, go on.
func (m *Member) Freeze(t testing.TB) {
	t.Helper()
	m.mustBreak(t)
	if err := m.world.host.freeze(m.number); err != nil {
		t.Fatal(err)
	}
}

// Thaw lets a frozen server go on where it was, with its clock ahead. It may be called
// on any goroutine.
func (m *Member) Thaw(t testing.TB) {
	t.Helper()
	if err := m.world.host.thaw(m.number); err != nil {
		t.Error(err)
	}
}

// Isolate cuts the member off from the others, while its clients reach it as before:
// it answers reads and pings from what it has, and neither writes nor syncs. It
// fails the test where there are no others.
func (m *Member) Isolate(t testing.TB) {
	t.Helper()
	m.mustBreak(t)
	if m.world.kind.Members() == 1 {
		t.Fatalf("worlds: isolate: the world must be an ensemble, and is %v", m.world.kind)
	}
	if err := m.world.host.isolate(m.number); err != nil {
		t.Fatal(err)
	}
}

// Heal ends what Isolate began.
func (m *Member) Heal() { m.world.host.heal(m.number) }

// Restart kills the server, starts it again with its data and returns when it serves
// clients. A member of an ensemble serves clients once it has found a leader. It may be
// called on any goroutine.
func (m *Member) Restart(t testing.TB) {
	t.Helper()
	if !m.world.cfg.breakable {
		t.Error("worlds: a member can be restarted only in a test that is Breakable")
		return
	}
	if err := m.world.host.restart(t.Context(), m.number); err != nil {
		t.Error(err)
	}
}

func (m *Member) mustBreak(t testing.TB) {
	t.Helper()
	if !m.world.cfg.breakable {
		t.Fatal("worlds: a member can be broken only in a test that is Breakable: the others share it")
	}
}
