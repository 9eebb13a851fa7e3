package lock_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/queuenode"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/lock"
)

// TestConstructorsNameEveryFault gives each constructor several bad arguments at once.
func TestConstructorsNameEveryFault(t *testing.T) {
	t.Parallel()
	c, err := framework.NewClient("127.0.0.1:1") // it is never asked
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	noFunctions := []lock.Option{recipes.WithRevocation(nil), recipes.WithQueuePosition(nil), recipes.WithACL()}
	for name, tc := range map[string]struct {
		construct func() error
		want      []string
	}{
		"mutex": {
			func() error {
				_, err := lock.NewMutex(nil, "/a//b", nil, recipes.WithLossPolicy(7), recipes.WithACL())
				return err
			},
			[]string{
				"lock: new mutex /a//b: client: must not be nil", `"/a//b": must not contain //`, "option 0: must not be nil",
				"loss policy LossPolicy(7)", "ACL: must have at least one entry",
			},
		},
		"read/write lock": {
			func() error { _, err := lock.NewRWMutex(nil, "rw/", noFunctions...); return err },
			[]string{
				"lock: new read/write lock rw/: client: must not be nil", `invalid path "rw/": must start with /`,
				"revocation: the function must not be nil", "queue position: the function must not be nil",
				"ACL: must have at least one entry",
			},
		},
		"unfair mutex": {
			func() error { _, err := lock.NewUnfairMutex(nil, "x//", nil); return err },
			[]string{"lock: new unfair mutex x//: client: must not be nil", `"x//"`, "option 0"},
		},
		"semaphore mutex": {
			func() error { _, err := lock.NewSemaphoreMutex(nil, "x//", nil); return err },
			[]string{"lock: new semaphore mutex x//: client: must not be nil", `"x//"`, "option 0"},
		},
		"unfair mutex with what needs a queue": {
			func() error {
				_, err := lock.NewUnfairMutex(c, "/x", recipes.WithRevocation(func(*lock.Lease) {}), recipes.WithQueuePosition(func(int) {}))
				return err
			},
			[]string{"revocation", "queue position"},
		},
		"local": {
			func() error { _, err := lock.NewLocal(nil, 0); return err },
			[]string{"mutex: must not be nil", "max 0: must be at least 1"},
		},
		"multi": {func() error { _, err := lock.NewMulti(); return err }, []string{"lock: new multi: locks: must be at least one"}},
	} {
		err := tc.construct()
		lines := strings.Split(errorText(err), "\n")
		if len(lines) < len(tc.want) {
			t.Errorf("%s: error\n%v\nhas fewer than %d lines", name, err, len(tc.want))
		}
		for _, want := range tc.want {
			if !slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, want) }) {
				t.Errorf("%s: error\n%v\ndoes not name %q", name, err, want)
			}
		}
	}
	for _, path := range []string{"", "relative", "/", "/a//b", "/a/", "/a/./b", "/a/../b", "/a\x00b", "/a\x1fb"} {
		if m, err := lock.NewMutex(c, path); m != nil || err == nil {
			t.Errorf("path %q: %v, %v; want an error", path, m, err)
		}
	}
}

// errorText returns the text of an error, and nothing if there is none.
func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// FuzzNodeData reads arbitrary data of a contender's znode.
func FuzzNodeData(f *testing.F) {
	f.Add([]byte(`{"docent":1,"owner":"o","host":"h","pid":7,"since":"2026-01-02T03:04:05Z","data":"AAE="}`), int32(0))
	f.Add([]byte("10.0.0.1"), int32(0))
	f.Add([]byte("__REVOKE__"), int32(1))
	f.Add([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff}, int32(1))
	f.Add([]byte(`{"docent":0}`), int32(2))
	f.Fuzz(func(t *testing.T, data []byte, version int32) {
		given := slices.Clone(data)
		m, ok := lease.DecodeMetadata(data)
		if ok != (m != nil) || ok && m.Version < 1 {
			t.Errorf("%q: %+v, %v", data, m, ok)
		}
		if ok {
			encoded, err := json.Marshal(m)
			if err != nil {
				return // a year that can be read and not written
			}
			again, ok := lease.DecodeMetadata(encoded)
			if !ok || again.Owner != m.Owner || again.PID != m.PID || !again.Since.Equal(m.Since) || !bytes.Equal(again.Data, m.Data) {
				t.Errorf("%q is read as %+v, written and read again %+v", data, m, again)
			}
		}
		if queuenode.RequestsRelease(data, 0) {
			t.Errorf("%q, put there by the contender itself, is taken for a request", data)
		}
		if plain := string(data) == "__REVOKE__"; plain && version != 0 && !queuenode.RequestsRelease(data, version) {
			t.Error("a request is not seen")
		}
		if !bytes.Equal(data, given) {
			t.Error("the data was changed")
		}
	})
}
