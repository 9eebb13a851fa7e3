package cache

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// After each of many random changes, the tree has what a map has, in the order of the paths. The former
// tree has not changed.
func TestTreeIsASortedMap(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	paths := []string{"/", "/a", "/a!", "/a/b", "/a/b/c", "/a/b0", "/a0", "/b"}
	var tree pathTree[int]
	model := map[string]int{}
	for i := range 2000 {
		before, was := tree, maps.Clone(model)
		path := paths[r.IntN(len(paths))]
		if r.IntN(3) == 0 {
			tree = tree.without(path)
			delete(model, path)
		} else {
			tree = tree.with(path, &i)
			model[path] = i
		}
		check(t, tree, model)
		check(t, before, was)
	}
}

func check(t *testing.T, tree pathTree[int], model map[string]int) {
	t.Helper()
	var order []string
	for path, value := range tree.from("") {
		if order = append(order, path); *value != model[path] {
			t.Errorf("%s is %d, want %d", path, *value, model[path])
		}
	}
	if want := slices.Sorted(maps.Keys(model)); !slices.Equal(order, want) || tree.len() != len(want) {
		t.Errorf("%d paths %q, want %q", tree.len(), order, want)
	}
	for _, parent := range []string{"/", "/a", "/a/b"} {
		var children, want []string
		for name := range tree.children(parent) {
			children = append(children, name)
		}
		within := 0
		for path := range model {
			rest, inside := strings.CutPrefix(path, below(parent))
			if inside && rest != "" && !strings.Contains(rest, "/") {
				want = append(want, rest)
			}
			if path == parent || inside && rest != "" {
				within++
			}
		}
		if slices.Sort(want); !slices.Equal(children, want) {
			t.Errorf("the children of %s are %q, want %q", parent, children, want)
		}
		if n := len(tree.subtree(parent)); n != within {
			t.Errorf("%d values at or below %s, want %d", n, parent, within)
		}
	}
}

// has returns for any path, also for one that no znode can have.
func TestHas(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{
		"/a": true, "/a/b": true, "/a/b/c": false, "/ab": false, "/": false,
		"/a/": false, "/a//": false, "/a//b": false, "//a": false, "": false, "a": false, "/a/./b": false,
	} {
		e := extent{root: "/a", depth: 1}
		has := make(chan bool, 1)
		go func() { has <- e.has(path) }()
		select {
		case got := <-has:
			if got != want {
				t.Errorf("Has(%q) = %v, want %v", path, got, want)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("Has(%q) does not return", path)
		}
	}
}
