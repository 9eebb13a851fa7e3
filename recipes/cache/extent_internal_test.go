package cache

import (
	"testing"
	"time"
)

// Has returns for any path, also for one that no znode can have.
func TestHas(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{
		"/a": true, "/a/b": true, "/a/b/c": false, "/ab": false, "/": false,
		"/a/": false, "/a//": false, "/a//b": false, "//a": false, "": false, "a": false, "/a/./b": false,
	} {
		e := extent{Root: "/a", Depth: 1}
		has := make(chan bool, 1)
		go func() { has <- e.Has(path) }()
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
