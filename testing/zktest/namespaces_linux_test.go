package zktest_test

import (
	"bufio"
	"errors"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zktest"
)

func newNetwork(t testing.TB, members int) zktest.TestNetwork {
	t.Helper()
	n := must.Get(zktest.NewNetwork(members))(t)
	t.Cleanup(func() { must.OK(t, n.Close()) })
	return n
}

// within starts a child in a member's namespace.
func within(t testing.TB, n zktest.TestNetwork, member int, name string) *talker {
	t.Helper()
	cmd := child(t, name)
	inside := exec.CommandContext(t.Context(), n.Enter[member][0], slices.Concat(n.Enter[member][1:], cmd.Args)...)
	inside.Env, inside.Stderr = cmd.Env, os.Stderr
	stdin, err := inside.StdinPipe()
	must.OK(t, err)
	stdout, err := inside.StdoutPipe()
	must.OK(t, err)
	must.OK(t, inside.Start())
	t.Cleanup(func() {
		_ = inside.Process.Kill()
		_ = inside.Wait()
	})
	return &talker{stdin, bufio.NewReader(stdout)}
}

// Messages during a cut are lost, in that direction alone, and no side is notified.
func TestACutDropsOneDirection(t *testing.T) {
	t.Parallel()
	needNamespaces(t)
	n, other := newNetwork(t, 3), newNetwork(t, 3)
	var ears, mouths []*talker
	for member := range 2 {
		ears, mouths = append(ears, within(t, n, member, "hears")), append(mouths, within(t, n, member, "says"))
		ears[member].expect(t, "ready")
	}
	both := func(word string) {
		mouths[0].say(t, n.Peers[1], word)
		mouths[1].say(t, n.Peers[0], word)
	}
	both("first")
	ears[0].expect(t, "first")
	ears[1].expect(t, "first") // else the cut may drop it on its way
	must.OK(t, n.Cut(0, 1))
	must.OK(t, n.Cut(0, 1)) // changes nothing
	both("second")
	must.OK(t, n.Heal())
	both("third")
	ears[0].expect(t, "second")
	ears[0].expect(t, "third")
	ears[1].expect(t, "third") // datagrams on one link don't overtake each other

	// Another network's cuts are its own, and so is its end.
	must.OK(t, other.Cut(0, 1))
	both("fourth")
	must.OK(t, other.Close())
	both("fifth")
	for _, ear := range ears {
		ear.expect(t, "fourth")
		ear.expect(t, "fifth")
	}
}

// Two that draw the same subnet: one has it, the other is told to draw again.
func TestASubnetIsHadOnce(t *testing.T) {
	t.Parallel()
	needNamespaces(t)
	n := newNetwork(t, 3)
	if err := n.Again(); !errors.Is(err, zktest.ErrPortTaken) {
		t.Errorf("a second network in one subnet: %v; want the error that is answered with another draw", err)
	}
	for _, server := range n.Servers {
		if !faces(t, net.JoinHostPort(server, wordPort)) {
			t.Errorf("the way to %s is gone with an attempt to make another", server)
		}
	}
}

func TestWhatTheDeadLeaveIsSweptUp(t *testing.T) {
	t.Parallel()
	needNamespaces(t)
	mine, left := newNetwork(t, 2), newNetwork(t, 2)
	gone := exec.CommandContext(t.Context(), "true")
	must.OK(t, gone.Run())
	must.OK(t, left.Abandon(gone.Process.Pid))
	newNetwork(t, 2)
	for i := range 2 {
		if faces(t, net.JoinHostPort(left.Servers[i], wordPort)) {
			t.Errorf("the way to %s is left, whose process is gone", left.Servers[i])
		}
		if !faces(t, net.JoinHostPort(mine.Servers[i], wordPort)) {
			t.Errorf("the way to %s is gone, whose process is here", mine.Servers[i])
		}
	}
}

func TestNamespacesEndWithTheirStarter(t *testing.T) {
	t.Parallel()
	zktest.Shared(t) // for its rules about a missing server
	needNamespaces(t)
	cmd := child(t, "parts")
	out, err := cmd.StdoutPipe()
	must.OK(t, err)
	must.OK(t, cmd.Start())
	lines := bufio.NewReader(out)
	announcement, err := lines.ReadString('\n')
	must.OK(t, err)
	addr, err := lines.ReadString('\n')
	must.OK(t, err)
	ours := func() bool { return faces(t, strings.TrimSpace(addr)) }
	if !ours() {
		t.Errorf("no interface of this machine leads to %s: this test shows nothing", addr)
	}
	must.OK(t, cmd.Process.Kill())
	_ = cmd.Wait()
	expectGone(t, strings.NewReader(announcement))
	zktest.Eventually(t, soon, "the way to the member is gone", func() bool { return !ours() })
}

// faces reports whether an interface of this machine leads to an address.
func faces(t testing.TB, addr string) bool {
	t.Helper()
	host, _, err := net.SplitHostPort(addr)
	must.OK(t, err)
	ours, err := net.InterfaceAddrs()
	must.OK(t, err)
	return slices.ContainsFunc(ours, func(a net.Addr) bool {
		network, ok := a.(*net.IPNet)
		return ok && network.Contains(net.ParseIP(host))
	})
}
