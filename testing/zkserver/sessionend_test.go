package zkserver_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zkserver"
)

// The events of a session's end come in no order that a client could rely on, and in the same for
// the same seed.
func TestSessionEndOrderFollowsSeed(t *testing.T) {
	t.Parallel()
	first := map[string]bool{}
	for seed := range uint64(20) {
		orders := [2][]string{endOrder(t, seed), endOrder(t, seed)}
		if !slices.Equal(orders[0], orders[1]) {
			t.Errorf("seed %d gives %v and then %v", seed, orders[0], orders[1])
		}
		first[orders[0][0]] = true
	}
	if len(first) < 3 {
		t.Errorf("with 20 seeds, the first of 5 events is always one of %v", first)
	}
}

// endOrder returns the paths of a session's nodes in the order in which a watcher is notified of
// their end.
func endOrder(t *testing.T, seed uint64) (order []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := zkserver.Run(t, zkserver.WithSeed(seed))
		watcher, dying := connect(t, srv), connect(t, srv)
		for i := range 5 {
			watcher.do(t, exists, dying.node(t, fmt.Sprintf("/%d", i), 1), true)
		}
		must.OK(t, srv.Expire(dying.session))
		for range 5 {
			got := must.Get(watcher.receive())(t)
			order = append(order, string(got.body[12:]))
		}
	})
	return order
}
