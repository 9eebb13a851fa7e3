package interop_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/group"
	"github.com/docent-go/docent/recipes/node"
	"github.com/docent-go/docent/testing/zktest"
)

func keep(t testing.TB, c *framework.Client, path, data string, opts ...node.Option) *node.Node {
	t.Helper()
	n := must.Get(node.New(c, path, []byte(data), opts...))(t)
	t.Cleanup(func() {
		if err := n.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return n
}

func patient(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), generous)
	t.Cleanup(cancel)
	return ctx
}

// awaitData waits until the znode at the path holds the data.
func awaitData(t testing.TB, c *framework.Client, path, data string) {
	t.Helper()
	zktest.Eventually(t, generous, "the data "+data+" of "+path, func() bool {
		got, _, err := c.Get(t.Context(), path)
		return err == nil && string(got) == data
	})
}

// exists returns what asks whether the znode at the path exists, or doesn't.
func exists(t testing.TB, c *framework.Client, path string, want bool) func() bool {
	t.Helper()
	return func() bool {
		_, ok, err := c.Exists(t.Context(), path)
		return err == nil && ok == want
	}
}

// A Node waits for Curator's PersistentNode, and its data is what Java reads.
func TestCuratorPersistentNodeIsNotTaken(t *testing.T) {
	t.Parallel()
	path, c, theirs := pathOf(t), newClient(t), newActor(t, curator)
	theirs.must(t, "keep", path, encoded("theirs"), "30000")
	n := keep(t, c, path, "ours")
	if err := n.Await(patient(t)); !errors.Is(err, node.ErrTaken) {
		t.Errorf("Await beside Curator's: %v, want ErrTaken", err)
	}
	awaitData(t, c, path, "theirs")
	theirs.must(t, "release", path)
	zktest.Eventually(t, generous, "docent's own znode", n.Exists)
	if got := theirs.must(t, "data", path); !slices.Equal(got, []string{encoded("ours")}) {
		t.Errorf("Java reads %q, want %q", got, encoded("ours"))
	}
}

// The layout of a TTL znode is one for both, so either keeps what the other has made.
func TestCuratorPersistentTTLNode(t *testing.T) {
	t.Parallel()
	const ttl = 2 * time.Second
	for name, oursFirst := range map[string]bool{"docent first": true, "Curator first": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, c, theirs := pathOf(t), newClient(t), newActor(t, curator)
			var n *node.Node
			ours := func() {
				n = keep(t, c, path, "ours", node.WithTTL(ttl))
				must.OK(t, n.Await(patient(t)))
			}
			if oursFirst {
				ours()
			}
			theirs.must(t, "keep-ttl", path, encoded("theirs"), "2000")
			if oursFirst {
				awaitData(t, c, path, "theirs") // Curator writes to whatever it finds
				must.OK(t, n.Close(t.Context()))
			} else {
				zktest.Eventually(t, generous, "Curator's touch", exists(t, c, path+"/touch", true))
				ours()
				awaitData(t, c, path, "ours")
				theirs.must(t, "release", path)
			}
			zktest.Never(t, 2*ttl, "the end of the znode, which one of them keeps", exists(t, c, path, false))
			if oursFirst {
				theirs.must(t, "release", path)
			} else if err := n.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			zktest.Eventually(t, generous, "the end of the znode", exists(t, c, path, false))
		})
	}
}

// Members of both libraries see each other, with their data.
func TestCuratorGroupMember(t *testing.T) {
	t.Parallel()
	path, theirs := pathOf(t), newActor(t, curator)
	g := must.Get(group.New(newClient(t), path))(t)
	t.Cleanup(func() {
		if err := g.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	theirs.must(t, "join", path, "java", encoded("j"))
	n := must.Get(g.Join("go", []byte("g")))(t)
	must.OK(t, n.Await(patient(t)))
	zktest.Eventually(t, generous, "docent sees both", func() bool { return slices.Equal(membersOf(g), []string{"go=g", "java=j"}) })
	want := []string{"go" + encoded("g"), "java" + encoded("j")}
	zktest.Eventually(t, generous, "Curator sees both", func() bool {
		got := theirs.must(t, "members", path)
		slices.Sort(got)
		return slices.Equal(got, want)
	})
	late := must.Get(g.Join("java", nil))(t)
	if err := late.Await(patient(t)); !errors.Is(err, node.ErrTaken) {
		t.Errorf("Await with Curator's id: %v, want ErrTaken", err)
	}
	must.OK(t, errors.Join(late.Close(t.Context()), n.Close(t.Context())))
	zktest.Eventually(t, generous, "Curator sees docent's member leave", func() bool {
		return slices.Equal(theirs.must(t, "members", path), want[1:])
	})
	theirs.must(t, "release", path)
	zktest.Eventually(t, generous, "docent sees Curator's member leave", func() bool { return len(membersOf(g)) == 0 })
}

func membersOf(g *group.Group) []string {
	var members []string
	for id, data := range g.Members() {
		members = append(members, id+"="+string(data))
	}
	return members
}
