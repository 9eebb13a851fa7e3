package lock_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/queuenode"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/lock"
)

// TestConstructorsNameEveryFault gives each constructor several bad arguments at once. Each fault has a line.
func TestConstructorsNameEveryFault(t *testing.T) {
	t.Parallel()
	c := must.Get(framework.NewClient("127.0.0.1:1"))(t) // it is never asked
	defer c.Close()
	revocation := recipes.WithRevocation(func(*lock.Lease) {})
	for _, tc := range []struct {
		err  error
		want []string
	}{
		{recipetest.Err(lock.NewMutex(nil, "/a//b", nil, recipes.WithLossPolicy(7), recipes.WithACL())), []string{
			"lock: new mutex /a//b: client: must not be nil", `"/a//b": must not contain //`, "option 0: must not be nil",
			"loss policy LossPolicy(7)", "ACL: must have at least one entry",
		}},
		{recipetest.Err(lock.NewRWMutex(nil, "rw/", recipes.WithRevocation(nil), recipes.WithQueuePosition(nil), recipes.WithACL())), []string{
			"lock: new read/write lock rw/: client: must not be nil", `invalid path "rw/": must start with /`,
			"revocation: the function must not be nil", "queue position: the function must not be nil",
			"ACL: must have at least one entry",
		}},
		{recipetest.Err(lock.NewUnfairMutex(nil, "x//", nil)), []string{"lock: new unfair mutex x//: client: must not be nil", `"x//"`, "option 0"}},
		{recipetest.Err(lock.NewSemaphoreMutex(nil, "x//", nil)), []string{"lock: new semaphore mutex x//: client: must not be nil", `"x//"`, "option 0"}},
		{recipetest.Err(lock.NewUnfairMutex(c, "/x", revocation, recipes.WithQueuePosition(func(int) {}))), []string{"revocation", "queue position"}},
		{recipetest.Err(lock.NewLocal(nil, 0)), []string{"mutex: must not be nil", "max 0: must be at least 1"}},
	} {
		recipetest.Says(t, tc.err, tc.want...)
		if lines := strings.Count(fmt.Sprint(tc.err), "\n") + 1; lines < len(tc.want) {
			t.Errorf("error\n%v\nhas fewer than %d lines", tc.err, len(tc.want))
		}
	}
	for _, path := range []string{"", "relative", "/", "/a//b", "/a/", "/a/./b", "/a/../b", "/a\x00b", "/a\x1fb"} {
		if m, err := lock.NewMutex(c, path); m != nil || err == nil {
			t.Errorf("path %q: %v, %v; want an error", path, m, err)
		}
	}
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
