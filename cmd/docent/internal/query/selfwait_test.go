package query_test

import (
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/must"
)

// What doctor says that it saw twice, it read twice: the wait of a process for itself that ends between the two looks
// is not shown, although the second look is at a deadlock of other locks.
func TestDoctor_looks_again_at_each_wait(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, env *environment) {
		for _, step := range []string{"x one", "y two", "y one", "x two"} { // a deadlock
			name, party, _ := strings.Cut(step, " ")
			contender(t, env.client, "/both/"+name+guid+"lock-", metadata(party, 1, "", party))
		}
		contender(t, env.client, "/both/turns"+guid+"lock-", metadata("h", 1, "", "parent"))
		child := contender(t, env.client, "/both/turns"+guid+"lock-", metadata("h", 1, "", "child"))
		done := make(chan error, 1)
		go func() {
			<-time.After(time.Second) // virtual: between the two looks
			done <- env.client.Delete(t.Context(), child)
		}()
		r := env.docent(t, "doctor", "/both", "--servers=false")
		must.OK(t, <-done)
		if !strings.Contains(r.out, "2 owners wait for each other, seen twice") || strings.Contains(r.out, "a process waits") {
			t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
		}
	})
}

// Goroutines of a process that take turns are no finding, if they have gone on by the second look. It costs a sync and the
// reads of that lock alone.
func TestDoctor_looks_again_at_what_takes_turns(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, env *environment) {
		contender(t, env.client, "/turns"+guid+"lock-", metadata("h", 1, "", "parent"))
		child := contender(t, env.client, "/turns"+guid+"lock-", metadata("h", 1, "", "child"))
		done := make(chan error, 1)
		go func() {
			<-time.After(time.Second) // virtual: between the two looks
			done <- env.client.Delete(t.Context(), child)
		}()
		r := env.docent(t, "doctor", "/turns", "--servers=false")
		must.OK(t, <-done)
		if r.code != 0 || strings.Contains(r.out, "self-wait") || !strings.Contains(r.out, "No deadlock found") {
			t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
		}
	})
}
