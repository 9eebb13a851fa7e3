package query_test

import (
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/cmd/docent/internal/form"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// serve accepts connections until the test ends, and hands each to fn, which owns it.
func serve(t *testing.T, l net.Listener, fn func(net.Conn)) {
	t.Helper()
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return // the test has ended
			}
			wg.Go(func() { fn(conn) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
}

// listen returns a listener on loopback.
func listen(t *testing.T) net.Listener {
	t.Helper()
	return must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
}

// answering returns the address of a server that answers srvr, and refuses all else.
func answering(t *testing.T, answer string) string {
	t.Helper()
	l := listen(t)
	serve(t, l, func(conn net.Conn) {
		defer func() { _ = conn.Close() }()
		word := make([]byte, 4)
		if _, err := io.ReadFull(conn, word); err == nil && string(word) == "srvr" {
			_, _ = io.WriteString(conn, answer)
		}
	})
	return l.Addr().String()
}

func srvr(version, mode string, outstanding int) string {
	return fmt.Sprintf("Zookeeper version: %s-abc, built on x\nLatency min/avg/max: 0/0.0/0\nOutstanding: %d\nZxid: 0x0\nMode: %s\nNode count: 5\n",
		version, outstanding, mode)
}

// listening returns the address of an embedded server with TCP, of the version that tests expect.
func listening(t *testing.T) string {
	t.Helper()
	return must.Get(zkserver.Run(t).Listen("127.0.0.1:0"))(t)
}

// examined runs doctor, with the arguments, on a server and on those that give the answers. It wants the texts.
func examined(t *testing.T, server string, answers, want []string, args ...string) result {
	t.Helper()
	addrs := []string{server}
	for _, answer := range answers {
		addrs = append(addrs, answering(t, answer))
	}
	r := plain(t, append([]string{"--connect", strings.Join(addrs, ","), "doctor"}, args...)...)
	for _, text := range want {
		if !strings.Contains(r.out, text) {
			t.Errorf("no %q in\n%s%s", text, r.out, r.err)
		}
	}
	return r
}

// TestDoctor_compares_the_servers: what each says about itself, and what all say together.
func TestDoctor_compares_the_servers(t *testing.T) {
	t.Parallel()
	real := listening(t) // 3.8.0, standalone
	for name, test := range map[string]struct {
		answers []string
		code    int
		want    []string
	}{
		"another version":      {[]string{srvr("3.9.2", "follower", 0)}, 4, []string{"WARNING version   the servers run different versions: 3.8.0 (", "3.9.2 ("}},
		"too old a version":    {[]string{srvr("3.5.10", "follower", 0)}, 4, []string{"it runs ZooKeeper 3.5.10, which docent does not support"}},
		"many requests":        {[]string{srvr("3.8.0", "follower", 100)}, 4, []string{"WARNING busy", "100 requests are outstanding"}},
		"no quorum":            {[]string{srvr("3.8.0", "read-only", 0)}, 4, []string{"WARNING server", "it is read-only"}},
		"two leaders":          {[]string{srvr("3.8.0", "leader", 0), srvr("3.8.0", "leader", 0)}, 4, []string{"ERROR   ensemble   several servers lead: "}},
		"two ensembles":        {[]string{srvr("3.8.0", "standalone", 0)}, 4, []string{"ERROR   ensemble", "standalone, so part of no ensemble"}},
		"a forbidden question": {[]string{"srvr is not executed because it is not in the whitelist.\n"}, 0, []string{"INFO    server", "it does not answer srvr"}},
		"starting":             {[]string{"This ZooKeeper instance is not currently serving requests\n"}, 4, []string{"ERROR   server", "it serves no requests"}},
		"another service":      {[]string{"HTTP/1.1 400 Bad Request\r\n"}, 0, []string{"WARNING server", "no answer that docent knows"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if r := examined(t, real, test.answers, test.want); r.code != test.code {
				t.Errorf("exit code %d, want %d", r.code, test.code)
			}
		})
	}
}

// TestDoctor_names_known_faults of the servers' versions, one finding for each version with a fault that docent can't
// help. They decide no exit code.
func TestDoctor_names_known_faults(t *testing.T) {
	t.Parallel()
	server := must.Get(zkserver.Run(t, zkserver.WithVersion("3.9.6")).Listen("127.0.0.1:0"))(t)
	const safe = "; docent is safe: "
	for name, test := range map[string]struct {
		answers  []string
		findings string
		want     []string
	}{
		"a release with mended faults": {[]string{srvr("3.8.0", "follower", 0), srvr("3.8.0", "leader", 0)}, "3 findings", []string{
			"INFO    known-faults   ZooKeeper 3.8.0 (127.0.0.1:",
			"          ZOOKEEPER-1675: ", "          ZOOKEEPER-4537: ", safe, "; mended in 3.6.4, 3.7.2, 3.8.1\n",
			"          CVE-2024-23944: watch events show the paths of znodes that the client may not read; mended in 3.8.4, 3.9.2\n",
			"          Upgrade the servers",
		}},
		"a patched release": {[]string{srvr("3.8.0-11+deb12u2", "follower", 0)}, "2 findings", []string{"3.8.0 (127.0.0.1:"}},
		"one version":       {[]string{srvr("3.9.6", "follower", 0)}, "1 finding", nil},
		"another program":   {[]string{"ClickHouse Keeper version: v23.8.1-x\nMode: follower\n"}, "1 finding", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			examined(t, server, test.answers, append(test.want, " "+test.findings+"\n"), "--fail-on", "info")
		})
	}
	r := plain(t, "--connect", server, "doctor", "--fail-on", "info")
	if r.code != 0 || !strings.Contains(r.out, " 0 findings\n") || strings.Contains(r.out, "known-faults") {
		t.Errorf("3.9.6 alone: exit code %d\n%s%s", r.code, r.out, r.err)
	}
	r = plain(t, "--connect", server, "doctor", "-o", "json")
	checkForm(t, []string{"-o", "json"}, r.out, r.err)
	var found form.Snapshot
	if err := json.Unmarshal([]byte(r.out), &found); err != nil || len(found.Findings) != 0 {
		t.Errorf("3.9.6 alone, as JSON: %v\n%s%s", err, r.out, r.err)
	}
}

// TestDoctor_says_the_verdict_first, and of each version first what docent can't help. "Safe" is said of no more
// than it is.
func TestDoctor_says_the_verdict_first(t *testing.T) {
	t.Parallel()
	r := plain(t, "--connect", listening(t), "doctor") // 3.8.0
	at := -1
	for _, want := range []string{
		"No deadlock found", " 1 finding\n", "INFO    known-faults", "has known faults that concern locks: 1 that docent can't help, 4 that it is safe from\n",
		"CVE-2024-23944", "docent is safe: ", "Upgrade the servers",
	} {
		next := strings.Index(r.out, want)
		if next < at || next < 0 {
			t.Errorf("%q is missing, or not after what belongs before it:\n%s", want, r.out)
		}
		at = next
	}
}

// Servers that do not answer take the time of one, and leave time for those that do.
func TestDoctor_asks_all_servers_at_the_same_time(t *testing.T) {
	t.Parallel()
	var addrs []string
	for range 4 {
		l := listen(t)
		serve(t, l, func(conn net.Conn) {
			defer func() { _ = conn.Close() }()
			word := make([]byte, 4)
			if _, err := io.ReadFull(conn, word); err == nil && string(word) == "srvr" {
				_, _ = io.Copy(io.Discard, conn) // until docent ends the connection
			}
		})
		addrs = append(addrs, l.Addr().String())
	}
	healthy := listening(t)
	r := plain(t, "--connect", strings.Join(append(addrs, healthy), ","), "doctor")
	if silent := strings.Count(r.out, "it can't be reached"); r.code != 4 || silent != len(addrs) || strings.Contains(r.out, healthy+":") {
		t.Errorf("exit code %d, %d servers of %d are reported:\n%s%s", r.code, silent, len(addrs), r.out, r.err)
	}
}

// TestDoctor_asks_by_TLS: the four-letter word goes the way of the client.
func TestDoctor_asks_by_TLS(t *testing.T) {
	t.Parallel()
	web := httptest.NewUnstartedServer(nil)
	web.StartTLS()
	defer web.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	must.OK(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw}), 0o600))
	server, secured := listening(t), listen(t)
	serve(t, tls.NewListener(secured, &tls.Config{Certificates: web.TLS.Certificates}), func(conn net.Conn) {
		defer func() { _ = conn.Close() }()
		behind, err := net.Dial("tcp", server)
		if err != nil {
			t.Error(err)
			return
		}
		go func() { // ends when conn is closed
			_, _ = io.Copy(behind, conn)
			_ = behind.Close()
		}()
		_, _ = io.Copy(conn, behind)
	})
	addr := secured.Addr().String()
	if r := plain(t, "--connect", addr, "--ca", ca, "doctor"); r.code != 0 || !strings.Contains(r.out, " 1 finding\n") { // the known faults
		t.Errorf("exit code %d: %s%s", r.code, r.out, r.err)
	}
	old := answering(t, srvr("3.8.0", "follower", 0)) // without TLS
	if r := plain(t, "--connect", addr+","+old, "--ca", ca, "doctor"); r.code != 4 || !strings.Contains(r.out, old+": it can't be reached: ") {
		t.Errorf("a server without TLS: exit code %d: %s%s", r.code, r.out, r.err)
	}
}

// TestDoctor_asks_the_AdminServer, which has the time, and answers if srvr is forbidden.
func TestDoctor_asks_the_AdminServer(t *testing.T) {
	t.Parallel()
	server := listening(t)
	for name, test := range map[string]struct {
		ahead time.Duration
		body  string
		want  string // "" for no finding of a server
	}{
		"equal clocks":      {0, `{"version":"3.8.0-x","server_stats":{"server_state":"leader"}}`, ""},
		"a clock ahead":     {time.Minute, `{"version":"3.8.0-x","server_stats":{"server_state":"leader"}}`, "ahead of this host's"},
		"a clock behind":    {-time.Minute, `{"version":"3.8.0-x","server_stats":{"server_state":"leader"}}`, "behind this host's"},
		"no answer of Java": {0, `<html>`, "its AdminServer does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/commands/srvr" {
					http.NotFound(w, r)
					return
				}
				w.Header().Set("Date", time.Now().Add(test.ahead).UTC().Format(http.TimeFormat))
				_, _ = io.WriteString(w, test.body)
			}))
			defer web.Close()
			_, port, err := net.SplitHostPort(web.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			r := plain(t, "--connect", server, "doctor", "--admin-port", port)
			if r.code != 0 || !strings.Contains(r.out, test.want) || test.want == "" && strings.Contains(r.out, server+":") {
				t.Errorf("exit code %d, no %q in\n%s%s", r.code, test.want, r.out, r.err)
			}
			mute := answering(t, "srvr is not executed because it is not in the whitelist.\n")
			r = plain(t, "--connect", server+","+mute, "doctor", "--admin-port", port)
			if forbidden := strings.Contains(r.out, "it does not answer srvr"); forbidden == (test.body[0] == '{') {
				t.Errorf("the AdminServer answers, and docent says srvr is forbidden: %v\n%s", forbidden, r.out)
			}
		})
	}
}

// TestDoctor_with_some_servers of a real ensemble: doctor reports the state of each, with a quorum and
// without one, and it reads the locks if it can.
func TestDoctor_with_some_servers(t *testing.T) {
	t.Parallel()
	ensemble := zktest.RunEnsemble(t, 3)
	states := func(up int) string {
		var list []string
		for i := range ensemble.Servers {
			switch {
			case i >= up:
				list = append(list, "unreachable")
			case up == 1:
				list = append(list, "no-quorum")
			default:
				list = append(list, "serves")
			}
		}
		return strings.Join(list, " ")
	}
	for _, test := range []struct {
		up, code int
		want     []string // in the text
	}{
		{3, 0, []string{"leader", "follower", "known-faults", "0 locks, 0 waiting, 1 finding\n"}},
		{2, 4, []string{"leader", "follower", "unreachable", "it can't be reached", "0 locks, 0 waiting, 2 findings\n"}},
		{1, 4, []string{"no-quorum", "unreachable", "it serves no requests: it has no quorum", "ERROR   connection", "No server serves", "the locks were not read, 4 findings"}},
		{0, 4, []string{"unreachable", "connection refused", "ERROR   connection", "No server serves", "the locks were not read, 4 findings"}},
	} {
		for _, server := range ensemble.Servers[test.up:min(test.up+1, 3)] {
			must.OK(t, server.Kill())
		}
		if test.up < 3 && test.up > 0 { // the others need a moment to notice
			awaitModes(t, ensemble.Servers[:test.up], test.up >= 2)
		}
		args := []string{"--connect", ensemble.Addr(), "--timeout", "5s", "doctor"}
		r := plain(t, args...)
		t.Logf("%d of 3 servers are up: exit code %d\n%s%s", test.up, r.code, r.out, r.err)
		if r.code != test.code {
			t.Errorf("%d of 3 servers are up: exit code %d, want %d", test.up, r.code, test.code)
		}
		for _, want := range test.want {
			if !strings.Contains(r.out, want) {
				t.Errorf("%d of 3 servers are up: no %q in\n%s%s", test.up, want, r.out, r.err)
			}
		}
		r = plain(t, append(args, "-o", "json")...)
		checkForm(t, []string{"-o", "json"}, r.out, r.err)
		var found form.Snapshot
		if err := json.Unmarshal([]byte(r.out), &found); err != nil {
			t.Fatalf("%d of 3 servers are up: %v\n%s%s", test.up, err, r.out, r.err)
		}
		var got []string
		for _, server := range found.Servers {
			state := server.State
			if state == "leader" || state == "follower" {
				state = "serves"
			}
			got = append(got, state)
		}
		if fmt.Sprint(got) != "["+states(test.up)+"]" || found.Complete != (test.up >= 2) || r.code != test.code {
			t.Errorf("%d of 3 servers are up: exit code %d, complete %v, servers %v, want %s", test.up, r.code, found.Complete, found.Servers, states(test.up))
		}
	}
}

// awaitModes waits until all servers serve, one of them as the leader, or none does. Followers say for a
// while that they serve when their leader has been killed.
func awaitModes(t *testing.T, servers []*zktest.Server, serve bool) {
	t.Helper()
	zktest.Eventually(t, time.Minute, fmt.Sprintf("all of %d servers serve: %v", len(servers), serve), func() bool {
		serving, leading := 0, 0
		for _, server := range servers {
			answer, err := server.FourLetter(t.Context(), "srvr")
			if err != nil {
				return false
			}
			serving += strings.Count(answer, "Mode: ")
			leading += strings.Count(answer, "Mode: leader")
		}
		return serve && serving == len(servers) && leading == 1 || !serve && serving == 0
	})
}
