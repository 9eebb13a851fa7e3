package framework_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/check"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zktest"
)

func TestSetChecksTheVersion(t *testing.T) {
	t.Parallel()
	c := connect(t, zktest.Shared(t).Addr()+fresh(t))
	mustCreate(t, c, "/a", "0")
	st, err := c.Set(t.Context(), "/a", []byte("1"), 0)
	must.That(t, err == nil && st.Version == 1, "%+v, %v", st, err)
	_, err = c.Set(t.Context(), "/a", []byte("2"), 0)
	wantErr(t, "set of an old version", err, framework.ErrBadVersion)
	_, err = c.Set(t.Context(), "/absent", nil, framework.AnyVersion)
	wantErr(t, "set of an absent znode", err, framework.ErrNoNode)
	_, err = c.Set(t.Context(), "/a", nil, -2) // a version that overflowed is negative
	wantErr(t, "set of a negative version", err, framework.ErrBadVersion)
}

func TestIdempotentOperations_after_a_lost_reply(t *testing.T) {
	t.Parallel()
	proxy := zkproxy.Run(t, zktest.Shared(t).Addr())
	root := fresh(t)
	c := connect(t, proxy.Addr()+root)
	mustCreate(t, c, "/a", "0")
	mustCreate(t, c, "/keep", "")
	drop := func(op fault.Op) {
		proxy.Rules().Add(fault.Rule{Op: op, Path: root + "/*", Action: fault.DropReply})
	}
	drop(fault.SetData)
	_, err := c.Set(t.Context(), "/a", []byte("1"), 0)
	wantErr(t, "plain set", err, framework.ErrBadVersion, framework.ErrUnknownOutcome)
	drop(fault.SetData)
	check.Equal(t, must.Get(c.Set(t.Context(), "/a", []byte("2"), 1, framework.Idempotent()))(t).Version, 2,
		"idempotent set")
	_, err = c.Set(t.Context(), "/a", []byte("other"), 1, framework.Idempotent())
	wantErr(t, "idempotent set of other data", err, framework.ErrBadVersion)
	drop(fault.Delete)
	check.Is(t, c.Delete(t.Context(), "/a"), nil, "plain delete whose reply was lost")
	wantErr(t, "plain delete of an absent znode", c.Delete(t.Context(), "/a"), framework.ErrNoNode)
	check.Is(t, c.Delete(t.Context(), "/a", framework.Idempotent()), nil, "idempotent delete of an absent znode")
	create := func(data string, opts ...framework.CreateOption) error {
		_, err := c.Create(t.Context(), "/b", []byte(data), append(opts, framework.Idempotent())...)
		return err
	}
	check.Is(t, errors.Join(create("x"), create("x")), nil, "idempotent creates")
	wantErr(t, "idempotent create of other data", create("y"), framework.ErrNodeExists)
	wantErr(t, "idempotent create of an ephemeral", create("x", framework.Ephemeral()), framework.ErrNodeExists)
}

func TestCreateOrSetDoesWhicheverIsNeeded(t *testing.T) {
	t.Parallel()
	c := connect(t, zktest.Shared(t).Addr()+fresh(t))
	for i, data := range []string{"first", "second"} {
		st, err := c.CreateOrSet(t.Context(), "/deep/a", []byte(data), framework.WithParents())
		check.That(t, err == nil && st.Version == int32(i), "%q: %+v, %v", data, st, err)
		check.Equal(t, string(must.First(c.Get(t.Context(), "/deep/a"))(t)), data, "data")
	}
	var wg sync.WaitGroup
	for i := range 8 { // while another deletes
		wg.Go(func() {
			for range 20 {
				check.OK(t, must.Err(c.CreateOrSet(t.Context(), "/deep/b", nil)))
				if err := c.Delete(t.Context(), "/deep/b", framework.Idempotent()); i == 0 && err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	_, err := c.CreateOrSet(t.Context(), "/a", nil, framework.Sequential())
	check.Says(t, err, "must not be Sequential", "sequential")
}

func TestDeleteTreeLeavesNothingWhileOthersCreate(t *testing.T) {
	t.Parallel()
	c := connect(t, zktest.Shared(t).Addr()+fresh(t))
	mustCreate(t, c, "/keep", "")
	for i := range 5 {
		for j := range 5 {
			mustCreate(t, c, fmt.Sprintf("/top/%d/%d", i, j), "")
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for range 20 {
			_, err := c.Create(t.Context(), "/top/1/new-", nil, framework.Sequential())
			check.That(t, err == nil || errors.Is(err, framework.ErrNoNode), "%v", err)
		}
	})
	check.OK(t, c.DeleteTree(t.Context(), "/top"))
	wg.Wait()
	got := children(t, c, "/")
	check.That(t, len(got) == 1, "children %v, want only the one beside", got)
	wantErr(t, "of an absent znode", c.DeleteTree(t.Context(), "/top"), framework.ErrNoNode)
	root := connect(t, zktest.Shared(t).Addr())
	check.Says(t, root.DeleteTree(t.Context(), "/"), "the root can't be deleted", "of the root")
}

func TestTxnDoesAllOrNothingAndNamesTheCulprit(t *testing.T) {
	t.Parallel()
	c := connect(t, zktest.Shared(t).Addr()+fresh(t))
	mustCreate(t, c, "/a", "0")
	mustCreate(t, c, "/gone", "")
	results, err := c.Txn(t.Context(),
		framework.OpCheck("/a", 0),
		framework.OpCreate("/node-", []byte("x"), framework.Ephemeral(), framework.Sequential()),
		framework.OpSet("/a", []byte("1"), 0),
		framework.OpDelete("/gone", framework.AnyVersion))
	must.That(t, err == nil && len(results) == 4 && strings.HasPrefix(results[1].Path, "/node-") && results[2].Stat.Version == 1,
		"%+v, %v", results, err)
	_, err = c.Txn(t.Context(), framework.OpSet("/a", []byte("2"), 1), framework.OpDelete("/gone", -1), framework.OpCreate("/b", nil))
	wantErr(t, "txn", err, framework.ErrNoNode)
	var culprit *framework.TxnError
	check.That(t, errors.As(err, &culprit) && culprit.Index == 1 && culprit.Op == "delete" && culprit.Path == "/gone",
		"culprit %+v in %v, want the delete", culprit, err)
	check.Equal(t, must.First(c.Exists(t.Context(), "/a"))(t).Version, 1,
		"what came before the culprit to be undone")
	_, err = c.Txn(t.Context(), framework.OpCreate("relative", nil), framework.TxnOp{}, framework.OpCreate("/c", nil, framework.Container()), framework.OpSet("b", nil, -3))
	for _, part := range []string{"operation 0 (create relative)", "operation 1 (empty TxnOp", "operation 2 (create /c): options", "operation 3 (set b)"} {
		check.That(t, err != nil && strings.Contains(err.Error(), part), "%v\nlacks %q", err, part)
	}
	_, err = c.Txn(t.Context())
	check.That(t, err != nil, "a transaction of nothing was accepted")
}

func TestARequestThatIsTooLargeIsNotSent(t *testing.T) {
	t.Parallel()
	proxy := zkproxy.Run(t, zktest.Shared(t).Addr())
	root := fresh(t)
	c := connect(t, proxy.Addr()+root)
	mustCreate(t, c, "/a", "")
	large := make([]byte, framework.DefaultMaxRequest)
	for name, call := range map[string]func() error{
		"create": func() error { _, err := c.Create(t.Context(), "/b", large); return err },
		"set":    func() error { _, err := c.Set(t.Context(), "/a", large, -1); return err },
		"txn": func() error {
			_, err := c.Txn(t.Context(), framework.OpSet("/a", large[:len(large)/2], -1), framework.OpSet("/a", large[:len(large)/2], -1))
			return err
		},
		"path": func() error {
			_, _, err := c.Get(t.Context(), "/"+string(bytes.Repeat([]byte("x"), len(large))))
			return err
		},
	} {
		proxy.ResetRequests()
		wantErr(t, name, call(), framework.ErrTooLarge)
		if n := len(proxy.Requests()); n > 1 { // a ping may pass
			t.Errorf("%s: %d requests were sent", name, n)
		}
	}
	// The largest that is sent, the server takes.
	fits := large[:len(large)-200]
	for n := len(large) - 100; n < len(large); n++ {
		_, err := c.Set(t.Context(), "/a", large[:n], framework.AnyVersion)
		switch {
		case err == nil:
			fits = large[:n]
		case !errors.Is(err, framework.ErrTooLarge):
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
	if data, _, err := c.Get(t.Context(), "/a"); err != nil || len(data) != len(fits) || len(large)-len(fits) > 40+len(root) {
		t.Errorf("%d bytes were taken at most, %d are stored (%v)", len(fits), len(data), err)
	}
	small := connect(t, proxy.Addr()+root, framework.WithMaxPacket(framework.MinPacket, framework.MinPacket), framework.WithRetry(retry.Once(0)))
	for n := framework.MinPacket - 100; n < framework.MinPacket; n++ { // up to the end of the wire client's buffer
		_, err := small.Set(t.Context(), "/a", large[:n], framework.AnyVersion)
		must.That(t, err == nil || errors.Is(err, framework.ErrTooLarge), "%d bytes: %v", n, err)
	}
	_, _, err := small.Get(t.Context(), "/"+strings.Repeat("x", framework.MinPacket-13-len(root)))
	wantErr(t, "path that fits the buffer without its flag", err, framework.ErrTooLarge)
	n := len(err.Error())
	check.That(t, n <= 1000, "the error has %d bytes", n)
}

func TestCompressedDataIsCurators(t *testing.T) {
	t.Parallel()
	addr := zktest.Shared(t).Addr() + fresh(t)
	c, plain := connect(t, addr, framework.WithCompression()), connect(t, addr)
	curatorEmpty := []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	text := strings.Repeat("compress me ", 100)
	mustCreate(t, c, "/text", text)
	mustCreate(t, c, "/empty", "")
	raw, _, err := plain.Get(t.Context(), "/text")
	if err != nil || !bytes.HasPrefix(raw, curatorEmpty[:10]) || len(raw) > len(text)/4 {
		t.Errorf("stored %d bytes, %x (%v)", len(raw), raw[:min(len(raw), 10)], err)
	}
	if raw, _, err := plain.Get(t.Context(), "/empty"); err != nil || !bytes.Equal(raw, curatorEmpty) {
		t.Errorf("no data is stored as %x (%v), want %x", raw, err, curatorEmpty)
	}
	for path, want := range map[string]string{"/text": text, "/empty": "", "/": ""} {
		if data, _, err := c.Get(t.Context(), path); err != nil || string(data) != want {
			t.Errorf("%s: %d bytes, %v, want %d", path, len(data), err, len(want))
		}
		if w := mustWatch(t, c, path, framework.WatchData); string(w.Data()) != want {
			t.Errorf("watch of %s: %d bytes, want %d", path, len(w.Data()), len(want))
		}
	}
	must.Get(c.Txn(t.Context(), framework.OpSet("/text", []byte("again"), -1)))(t)
	check.Equal(t, string(must.First(c.Get(t.Context(), "/text"))(t)), "again", "after a transaction")
	mustCreate(t, plain, "/plain", "not gzip")
	_, _, err = c.Get(t.Context(), "/plain")
	wantErr(t, "get of data that is not compressed", err, framework.ErrNotGzip)
	if w := mustWatch(t, c, "/plain", framework.WatchData); string(w.Data()) != "not gzip" {
		t.Errorf("watch of data that is not compressed: %q, want it as it is", w.Data())
	}
}

func TestAGuaranteedDeleteSurvivesAReconnection(t *testing.T) {
	t.Parallel()
	server := zktest.Shared(t)
	proxy := zkproxy.Run(t, server.Addr())
	var g gate
	c := connect(t, proxy.Addr(), framework.WithDialer(g.dial), framework.WithSessionTimeout(20*time.Second))
	observer := connect(t, server.Addr())
	var paths []string
	for range 5 {
		paths = append(paths, mustCreate(t, c, "/guaranteed/node-", "", framework.Ephemeral(), framework.Sequential()))
	}
	g.shut()
	proxy.Cut()
	zktest.Eventually(t, patience, "the cut is noticed: before, a request would wait in the wire client", func() bool { return c.State() == suspended })
	bound := c.InSession(c.Session().ID)
	for _, path := range paths {
		err := bound.Delete(within(t, 10*time.Millisecond), path, framework.Guaranteed())
		check.That(t, err != nil, "a delete without a connection succeeded")
		bound.Discard(path) // asked for twice, done once
	}
	check.Equal(t, c.PendingDeletes(), len(paths), "deletes are pending")
	proxy.ResetRequests()
	g.open()
	zktest.Eventually(t, patience, "the deletes are done", func() bool { return c.PendingDeletes() == 0 })
	var deleted []string
	for _, rq := range proxy.Requests() {
		if rq.Op == fault.Delete {
			deleted = append(deleted, rq.Path)
		}
	}
	slices.Sort(deleted)
	check.Slices(t, deleted, paths, "deleted, want each once: %v", paths)
	for _, path := range paths {
		check.Equal(t, must.Second(observer.Exists(t.Context(), path))(t), false, "%s exists", path)
	}
	c.Discard("not a path")
	check.Equal(t, c.PendingDeletes(), 0, "a path that no znode can have is to be deleted")
}

func TestGuaranteedDeletesEndWithTheirSession(t *testing.T) {
	t.Parallel()
	server := zktest.Shared(t)
	proxy := zkproxy.Run(t, server.Addr())
	var g gate
	c := connect(t, proxy.Addr(), framework.WithDialer(g.dial), framework.WithSessionTimeout(2*time.Second))
	bound := c.InSession(c.Session().ID)
	stays := mustCreate(t, c, fresh(t)+"/stays", "")
	g.shut()
	proxy.Cut()
	bound.Discard(stays)
	zktest.Eventually(t, patience, "the session's deletes are dropped", func() bool { return c.PendingDeletes() == 0 && c.State() == lost })
	c.Discard(stays) // of no session: it outlives them
	check.Says(t, c.Close(), stays, "Close, want it to name what was not deleted")
}
