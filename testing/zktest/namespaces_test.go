package zktest_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/testing/zktest"
)

// needNamespaces skips the test, or fails it on a build server that has privileges,
// where there are none.
func needNamespaces(t testing.TB) {
	t.Helper()
	err := zktest.Namespaces()
	switch {
	case err == nil:
	case os.Getenv("CI") == "true" && os.Geteuid() == 0:
		t.Fatal(err)
	default:
		t.Skipf("SKIPPED, NOT TESTED: %v", err)
	}
}

func newNetwork(t testing.TB, members int) zktest.TestNetwork {
	t.Helper()
	n, err := zktest.NewNetwork(members)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { must(t, n.Close()) })
	return n
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A party is somebody in a namespace, who says or hears words.
type party struct {
	stdin io.Writer
	lines *bufio.Reader
}

// wordPort is where those who hear are told.
const wordPort = "7000"

// hears is a child that prints each datagram it gets.
func hears() {
	conn, err := net.ListenPacket("udp4", ":"+wordPort)
	if err != nil {
		panic(err)
	}
	fmt.Println("ready")
	for buf := make([]byte, 1<<10); ; {
		n, _, err := conn.ReadFrom(buf)
		if err != nil {
			panic(err)
		}
		fmt.Println(string(buf[:n]))
	}
}

// says is a child that sends datagrams: each line of its input is an address and a word.
func says() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		to, word, _ := strings.Cut(lines.Text(), " ")
		conn, err := net.Dial("udp4", net.JoinHostPort(to, wordPort))
		if err != nil {
			panic(err)
		}
		if _, err := io.WriteString(conn, word); err != nil {
			panic(err)
		}
		fmt.Println("said")
		_ = conn.Close()
	}
}

// within starts a child in a member's namespace.
func within(t testing.TB, n zktest.TestNetwork, member int, name string) *party {
	t.Helper()
	cmd := child(t, name)
	inside := exec.CommandContext(t.Context(), n.Enter[member][0], slices.Concat(n.Enter[member][1:], cmd.Args)...)
	inside.Env, inside.Stderr = cmd.Env, os.Stderr
	stdin, err := inside.StdinPipe()
	must(t, err)
	stdout, err := inside.StdoutPipe()
	must(t, err)
	must(t, inside.Start())
	t.Cleanup(func() {
		_ = inside.Process.Kill()
		_ = inside.Wait()
	})
	return &party{stdin, bufio.NewReader(stdout)}
}

func (p *party) expect(t testing.TB, want string) {
	t.Helper()
	if got, err := p.lines.ReadString('\n'); got != want+"\n" {
		t.Fatalf("heard %q, %v; want %q", got, err, want)
	}
}

func (p *party) say(t testing.TB, to, word string) {
	t.Helper()
	_, err := fmt.Fprintln(p.stdin, to, word)
	must(t, err)
	p.expect(t, "said")
}

// What was said during a cut is lost, on that way alone, and nobody is told.
func TestACutDropsOneWayAndNoOther(t *testing.T) {
	t.Parallel()
	needNamespaces(t)
	n, other := newNetwork(t, 3), newNetwork(t, 3)
	var ears, mouths []*party
	for member := range 2 {
		ears, mouths = append(ears, within(t, n, member, "hears")), append(mouths, within(t, n, member, "says"))
		ears[member].expect(t, "ready")
	}
	both := func(word string) {
		mouths[0].say(t, n.Peers[1], word)
		mouths[1].say(t, n.Peers[0], word)
	}
	both("first")
	must(t, n.Cut(0, 1))
	must(t, n.Cut(0, 1)) // changes nothing
	both("second")
	must(t, n.Heal())
	both("third")
	for _, word := range []string{"first", "second", "third"} {
		ears[0].expect(t, word)
	}
	ears[1].expect(t, "first")
	ears[1].expect(t, "third") // datagrams on one link don't overtake each other

	// Another network's cuts are its own, and so is its end.
	must(t, other.Cut(0, 1))
	both("fourth")
	must(t, other.Close())
	both("fifth")
	for _, ear := range ears {
		ear.expect(t, "fourth")
		ear.expect(t, "fifth")
	}
}

func TestClientsThatAreCutOffAreNotToldSo(t *testing.T) {
	t.Parallel()
	needNamespaces(t)
	n := newNetwork(t, 2)
	dial := func(member int) error {
		conn, err := net.DialTimeout("tcp4", net.JoinHostPort(n.Servers[member], wordPort), 100*time.Millisecond)
		if err == nil {
			_ = conn.Close()
		}
		return err
	}
	refused := func(member int) bool { return strings.Contains(fmt.Sprint(dial(member)), "refused") }
	reached := func(member int) {
		t.Helper()
		zktest.Eventually(t, soon, "clients reach the member's system", func() bool { return refused(member) })
	}
	reached(0)
	must(t, n.CutClients(0))
	if err := dial(0); !os.IsTimeout(err) {
		t.Errorf("dial of a member that is cut off = %v; want a timeout", err)
	}
	reached(1)
	must(t, n.Heal())
	reached(0)
}

func TestNamespacesEndWithTheirStarter(t *testing.T) {
	t.Parallel()
	zktest.Shared(t) // for its rules about a missing server
	needNamespaces(t)
	cmd := child(t, "parts")
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	lines := bufio.NewReader(out)
	announcement, err := lines.ReadString('\n')
	must(t, err)
	addr, err := lines.ReadString('\n')
	must(t, err)
	ours := func() bool { return faces(t, strings.TrimSpace(addr)) }
	if !ours() {
		t.Errorf("no interface of this machine leads to %s: this test shows nothing", addr)
	}
	must(t, cmd.Process.Kill())
	_ = cmd.Wait()
	expectGone(t, strings.NewReader(announcement))
	zktest.Eventually(t, soon, "the way to the member is gone", func() bool { return !ours() })
}

// faces reports whether an interface of this machine leads to an address.
func faces(t testing.TB, addr string) bool {
	t.Helper()
	host, _, err := net.SplitHostPort(addr)
	must(t, err)
	ours, err := net.InterfaceAddrs()
	must(t, err)
	return slices.ContainsFunc(ours, func(a net.Addr) bool {
		network, ok := a.(*net.IPNet)
		return ok && network.Contains(net.ParseIP(host))
	})
}
