package query_test

import (
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/must"
)

// What doctor says that it saw twice, it read twice: the wait of a process for itself that ends between the two looks,
// as that of goroutines which take turns, is not shown. That costs a sync and the reads of its lock alone, also if there
// is a deadlock of other locks.
func TestDoctor_looks_again_at_each_wait(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		others []string // contenders of other locks
		code   int
		want   string
	}{
		"turns alone":       {nil, 0, "No deadlock found"},
		"beside a deadlock": {[]string{"x one", "y two", "y one", "x two"}, 4, "2 owners wait for each other, seen twice"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			virtual(t, func(t *testing.T, env *environment) {
				for _, step := range test.others {
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
				if r.code != test.code || !strings.Contains(r.out, test.want) || strings.Contains(r.out, "a process waits") || strings.Contains(r.out, "self-wait") {
					t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
				}
			})
		})
	}
}
