package query_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/cmd/docent/internal/form"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zktest"
)

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
