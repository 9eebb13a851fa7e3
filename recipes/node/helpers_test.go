package node_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/node"
	"github.com/docent-go/docent/testing/zktest"
)

// kept returns a new Node that is closed at the end of the test.
func kept(t testing.TB, c *framework.Client, path, data string, opts ...node.Option) *node.Node {
	t.Helper()
	n := must.Get(node.New(c, path, []byte(data), opts...))(t)
	t.Cleanup(func() { must.OK(t, n.Close(context.WithoutCancel(t.Context()))) })
	return n
}

func mustAwait(t testing.TB, n *node.Node) {
	t.Helper()
	must.OK(t, n.Await(recipetest.Patient(t)))
}

// mustHold checks that the znode at the path has the data, and belongs to the client's session. It
// asks by another client, and returns the Stat.
func mustHold(t testing.TB, observer, c *framework.Client, path, data string) framework.Stat {
	t.Helper()
	must.OK(t, observer.Sync(t.Context(), path))
	got, st := must.Get2(observer.Get(t.Context(), path))(t)
	if string(got) != data {
		t.Errorf("data of %s: %q, want %q", path, got, data)
	}
	if id := c.Session().ID; st.EphemeralOwner != id {
		t.Errorf("owner of %s: %#x, want the client's session %#x", path, st.EphemeralOwner, id)
	}
	return st
}

// exists reports whether there is a znode at the path, as c sees it after a sync.
func exists(t testing.TB, c *framework.Client, path string) bool {
	t.Helper()
	must.OK(t, c.Sync(t.Context(), path))
	_, ok := must.Get2(c.Exists(t.Context(), path))(t)
	return ok
}

// A journal is what OnChange has told.
type journal struct {
	mu   sync.Mutex
	seen []node.Change
}

func follow(t testing.TB, n *node.Node) *journal {
	t.Helper()
	j := new(journal)
	t.Cleanup(n.OnChange(func(c node.Change) {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.seen = append(j.seen, c)
	}))
	return j
}

func (j *journal) changes() []node.Change {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.seen)
}

// kinds returns the kinds of the changes, as in "Made Away Made".
func (j *journal) kinds() string {
	var kinds []string
	for _, c := range j.changes() {
		kinds = append(kinds, c.Kind.String())
	}
	return strings.Join(kinds, " ")
}

// awaitKinds waits until the kinds of the changes are those.
func (j *journal) awaitKinds(t testing.TB, want string) {
	t.Helper()
	zktest.Eventually(t, recipetest.Generous, "the changes "+want+"; they were "+j.kinds(), func() bool { return j.kinds() == want })
}
