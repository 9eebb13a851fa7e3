package framework_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

func TestSetChecksTheVersion(t *testing.T) {
	t.Parallel()
	c := connect(t, zktest.Shared(t).Addr()+fresh(t))
	mustCreate(t, c, "/a", "0")
	st, err := c.Set(t.Context(), "/a", []byte("1"), 0)
	if err != nil || st.Version != 1 {
		t.Fatalf("%+v, %v", st, err)
	}
	wantErr(t, "set of an old version", last(c.Set(t.Context(), "/a", []byte("2"), 0)), framework.ErrBadVersion)
	wantErr(t, "set of an absent znode", last(c.Set(t.Context(), "/absent", nil, framework.AnyVersion)), framework.ErrNoNode)
	_, err = c.Set(t.Context(), "/a", nil, -2) // a version that overflowed is negative
	wantErr(t, "set of a negative version", err, framework.ErrBadVersion)
}

func TestIdempotentMeansTheSameEffect(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtual(t, srv)
		create := func(data string, opts ...framework.CreateOption) error {
			return last(c.Create(t.Context(), "/b", []byte(data), append(opts, framework.Idempotent())...))
		}
		wantErr(t, "creates", errors.Join(create("x"), create("x")), nil)
		wantErr(t, "a create of other data", create("y"), framework.ErrNodeExists)
		wantErr(t, "a create of an ephemeral", create("x", framework.Ephemeral()), framework.ErrNodeExists)
		must.Get(c.Set(t.Context(), "/b", []byte("x"), 0))(t)
		_, err := c.Set(t.Context(), "/b", []byte("y"), 0, framework.Idempotent())
		wantErr(t, "a set of other data", err, framework.ErrBadVersion)
		wantErr(t, "a deletion of nothing", c.Delete(t.Context(), "/none", framework.Idempotent()), nil)
	})
}

func TestCreateOrSetDoesWhicheverIsNeeded(t *testing.T) {
	t.Parallel()
	c := connect(t, zktest.Shared(t).Addr()+fresh(t))
	for i, data := range []string{"first", "second"} {
		st, err := c.CreateOrSet(t.Context(), "/deep/a", []byte(data), framework.WithParents())
		if err != nil || st.Version != int32(i) {
			t.Errorf("%q: %+v, %v", data, st, err)
		}
		if got, _, err := c.Get(t.Context(), "/deep/a"); err != nil || string(got) != data {
			t.Errorf("data %q, %v, want %q", got, err, data)
		}
	}
	var wg sync.WaitGroup
	for i := range 8 { // while another deletes
		wg.Go(func() {
			for range 20 {
				check(t, last(c.CreateOrSet(t.Context(), "/deep/b", nil)))
				if err := c.Delete(t.Context(), "/deep/b", framework.Idempotent()); i == 0 && err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
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
	if err != nil || len(results) != 4 || !strings.HasPrefix(results[1].Path, "/node-") || results[2].Stat.Version != 1 {
		t.Fatalf("%+v, %v", results, err)
	}
	_, err = c.Txn(t.Context(), framework.OpSet("/a", []byte("2"), 1), framework.OpDelete("/gone", -1), framework.OpCreate("/b", nil))
	wantErr(t, "txn", err, framework.ErrNoNode)
	var culprit *framework.TxnError
	if !errors.As(err, &culprit) || culprit.Index != 1 || culprit.Op != "delete" || culprit.Path != "/gone" {
		t.Errorf("culprit %+v in %v, want the delete", culprit, err)
	}
	if st, _, err := c.Exists(t.Context(), "/a"); err != nil || st.Version != 1 {
		t.Errorf("%+v, %v: want what came before the culprit to be undone", st, err)
	}
}

// The reply to a transaction is as long as the transaction says, and no longer than that is accepted.
func TestATransactionWithALongReply(t *testing.T) {
	t.Parallel()
	repeated := func(n int, op framework.TxnOp) []framework.TxnOp { return slices.Repeat([]framework.TxnOp{op}, n) }
	created := func(n int) (ops []framework.TxnOp) {
		for i := range n {
			ops = append(ops, framework.OpCreate(fmt.Sprintf("/d/%d", i), nil))
		}
		return ops
	}
	for name, tc := range map[string]struct {
		ops   []framework.TxnOp
		reply int // bytes that one reply may have
		fails bool
	}{
		"15,000 sets":                    {repeated(15000, framework.OpSet("/d", nil, framework.AnyVersion)), 0, false},
		"15,000 checks":                  {repeated(15000, framework.OpCheck("/d", framework.AnyVersion)), 0, false},
		"9,000 creates":                  {created(9000), 0, false},
		"600 sets with a low limit":      {repeated(600, framework.OpSet("/d", nil, framework.AnyVersion)), framework.MinPacket, false},
		"creates with a low limit":       {created(600), framework.MinPacket, false},
		"a failure of the last of many":  {append(repeated(15000, framework.OpSet("/d", nil, framework.AnyVersion)), framework.OpCheck("/none", 0)), 0, true},
		"a failure of the first of many": {append([]framework.TxnOp{framework.OpCheck("/none", 0)}, created(5000)...), framework.MinPacket, true},
	} {
		runVirtually(t, name, func(t *testing.T, srv *zkserver.Server) {
			var opts []framework.Option
			if tc.reply > 0 {
				opts = append(opts, framework.WithMaxPacket(1<<20, tc.reply))
			}
			c := virtual(t, srv, opts...)
			mustCreate(t, c, "/d", "")
			results, err := c.Txn(t.Context(), tc.ops...)
			if tc.fails {
				wantErr(t, "the transaction", err, framework.ErrNoNode)
				return
			}
			check(t, err)
			wantEqual(t, "results", len(results), len(tc.ops))
		})
	}
}

func TestARequestThatIsTooLargeIsNotSent(t *testing.T) {
	t.Parallel()
	proxy := zkproxy.Run(t, zktest.Shared(t).Addr())
	root := fresh(t)
	c := connect(t, proxy.Addr()+root)
	mustCreate(t, c, "/a", "")
	large := make([]byte, framework.DefaultMaxRequest)
	for name, call := range map[string]func() error{
		"create": func() error { return last(c.Create(t.Context(), "/b", large)) },
		"set":    func() error { return last(c.Set(t.Context(), "/a", large, -1)) },
		"txn": func() error {
			return last(c.Txn(t.Context(), framework.OpSet("/a", large[:len(large)/2], -1), framework.OpSet("/a", large[:len(large)/2], -1)))
		},
		"path": func() error { return last(c.Get(t.Context(), "/"+string(bytes.Repeat([]byte("x"), len(large))))) },
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
		wantData(t, c, path, want)
		wantEqual(t, "data of a watch of "+path, string(mustWatch(t, c, path, framework.WatchData).Data()), want)
	}
	must.Get(c.Txn(t.Context(), framework.OpSet("/text", []byte("again"), -1)))(t)
	wantData(t, c, "/text", "again")
	mustCreate(t, plain, "/plain", "not gzip")
	wantErr(t, "get of data that is not compressed", last(c.Get(t.Context(), "/plain")), framework.ErrNotGzip)
	wantEqual(t, "a watch of data that is not compressed", string(mustWatch(t, c, "/plain", framework.WatchData).Data()), "not gzip")
}

// Curator's recipes throw NullPointerException where a znode holds null: LeaderLatch.getLeader and
// SharedValue.start do. So every write of nil is one of an empty array, as Curator's are.
func TestNilIsWrittenAsAnEmptyArray(t *testing.T) {
	for name, write := range map[string]func(ctx context.Context, c *framework.Client) error{
		"Create": func(ctx context.Context, c *framework.Client) error { return last(c.Create(ctx, "/n", nil)) },
		"Create with parents": func(ctx context.Context, c *framework.Client) error {
			return last(c.Create(ctx, "/n/below", nil, framework.WithParents()))
		},
		"Create known by its data": func(ctx context.Context, c *framework.Client) error {
			return last(c.Create(ctx, "/n", nil, framework.Ephemeral(), framework.KnownBySession()))
		},
		"CreateAll": func(ctx context.Context, c *framework.Client) error {
			return last(c.CreateAll(ctx, framework.OpCreate("/n", nil, framework.Ephemeral(), framework.Protected())))
		},
		"CreateOrSet": func(ctx context.Context, c *framework.Client) error { return last(c.CreateOrSet(ctx, "/n", nil)) },
		"Set": func(ctx context.Context, c *framework.Client) error {
			return errors.Join(last(c.Create(ctx, "/n", []byte("old"))), last(c.Set(ctx, "/n", nil, 0)))
		},
		"OpCreate": func(ctx context.Context, c *framework.Client) error {
			return last(c.Txn(ctx, framework.OpCreate("/n", nil)))
		},
		"OpSet": func(ctx context.Context, c *framework.Client) error {
			return errors.Join(last(c.Create(ctx, "/n", []byte("old"))), last(c.Txn(ctx, framework.OpSet("/n", nil, 0))))
		},
	} {
		runSynctest(t, name, func(t *testing.T) {
			c := virtual(t, zkserver.Run(t))
			must.OK(t, write(t.Context(), c))
			for _, child := range children(t, c, "/") {
				if data, _ := must.Get2(c.Get(t.Context(), "/"+child))(t); data == nil {
					t.Errorf("%s holds null", child)
				}
			}
		})
	}
}

// A guaranteed deletion that finds no connection is done once there is one. Others are not.
func TestAGuaranteedDeleteSurvivesAReconnection(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtual(t, srv, framework.WithRetry(retry.Never()), framework.WithSessionTimeout(20*time.Second))
		var paths []string
		for range 5 {
			paths = append(paths, mustCreate(t, c, "/guaranteed/node-", "", framework.Ephemeral(), framework.Sequential()))
		}
		ordinary := mustCreate(t, c, "/ordinary", "")
		wantErr(t, "a deletion of nothing", c.Delete(t.Context(), "/missing", framework.Guaranteed()), framework.ErrNoNode)
		wantEqual(t, "pending deletions of nothing", c.PendingDeletes(), 0)
		disconnect(srv)
		synctest.Wait()
		bound := c.InSession(c.Session().ID)
		for _, path := range paths {
			wantErr(t, "a deletion without a connection", bound.Delete(within(t, time.Millisecond), path, framework.Guaranteed()), framework.ErrNotConnected)
			bound.Discard(path) // asked for twice, done once
		}
		wantErr(t, "one that is not guaranteed", bound.Delete(within(t, time.Millisecond), ordinary), framework.ErrNotConnected)
		wantEqual(t, "pending deletions", c.PendingDeletes(), len(paths))
		deletes := srv.Rules().Add(fault.Rule{Op: fault.Delete, Action: fault.Pass, Times: fault.Forever})
		srv.Accept()
		zktest.Eventually(t, patience, "the deletions are done", func() bool { return c.PendingDeletes() == 0 })
		wantEqual(t, "deletions that were sent", deletes.Hits(), len(paths))
		wantList(t, "znodes that are left", children(t, c, "/guaranteed"), nil)
		wantExists(t, c, ordinary, true)
		c.Discard("not a path")
		wantEqual(t, "pending deletions, of a path that no znode can have", c.PendingDeletes(), 0)
	})
}

// Deletions that are bound to a session end with it. Others are done in the next session, or Close names them.
func TestGuaranteedDeletesEndWithTheirSession(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		var seen trail
		c := virtual(t, srv, framework.WithRetry(retry.Never()), framework.WithStateListener(seen.add), framework.WithNamespace("ns"))
		stays, goes := mustCreate(t, c, "/stays", ""), mustCreate(t, c, "/goes", "")
		bound := c.InSession(c.Session().ID)
		disconnect(srv)
		bound.Discard(stays)
		seen.await(t, connecting, connected, suspended, lost)
		synctest.Wait()
		wantEqual(t, "pending deletions of the session", c.PendingDeletes(), 0)
		wantErr(t, "a deletion while Lost", c.Delete(t.Context(), goes, framework.Guaranteed()), framework.ErrNotConnected)
		srv.Accept()
		zktest.Eventually(t, patience, "the deletion is done", func() bool { return c.PendingDeletes() == 0 })
		wantList(t, "znodes that are left", children(t, c, "/"), []string{"stays"})
		disconnect(srv)
		synctest.Wait()
		c.Discard(stays)
		wantText(t, last(c.Close()), stays)
	})
}
