package framework_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkserver"
)

// oversized makes a directory whose listing is longer than a client of the least packets
// reads, and a znode whose data is.
func oversized(t *testing.T, srv *zkserver.Server) (dir, node string) {
	t.Helper()
	c := virtual(t, srv)
	dir, node = fresh(t), fresh(t)
	mustCreate(t, c, node, strings.Repeat("x", framework.MinPacket))
	mustCreate(t, c, dir, "")
	for n := range 50 {
		mustCreate(t, c, fmt.Sprintf("%s/%s-%d", dir, strings.Repeat("n", 100), n), "")
	}
	return dir, node
}

func small(t *testing.T, srv *zkserver.Server, opts ...framework.Option) *framework.Client {
	t.Helper()
	return virtual(t, srv, append(opts, framework.WithMaxPacket(framework.DefaultMaxRequest, framework.MinPacket))...)
}

func TestOversizedReply_keeps_the_connection(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		dir, node := oversized(t, srv)
		var seen trail
		retries := 0
		c := small(t, srv, framework.WithStateListener(seen.add), framework.WithRetryObserver(func(framework.Retry) { retries++ }))
		seen.await(t, connecting, connected)
		others := make(chan error, 1)
		go func() {
			for range 100 {
				if _, _, err := c.Exists(t.Context(), "/"); err != nil {
					others <- err
					return
				}
			}
			others <- nil
		}()
		_, _, err := c.Get(t.Context(), node)
		wantErr(t, "Get", err, framework.ErrTooLarge)
		_, _, err = c.Children(t.Context(), dir)
		wantErr(t, "Children", err, framework.ErrTooLarge)
		_, err = c.Watch(t.Context(), dir, framework.WatchChildren)
		wantErr(t, "Watch", err, framework.ErrTooLarge)
		wantErr(t, "DeleteTree", c.DeleteTree(t.Context(), dir), framework.ErrTooLarge)
		if framework.Retryable(err) || errors.Is(err, framework.ErrUnknownOutcome) {
			t.Errorf("%v: a read has no effect", err)
		}
		if err := <-others; err != nil {
			t.Errorf("another read: %v", err)
		}
		if retries > 0 {
			t.Errorf("%d retries", retries)
		}
		synctest.Wait()
		seen.await(t, connecting, connected)
	})
}

// The transaction has been done: only its reply is left out.
func TestOversizedReply_to_a_transaction(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		var seen trail
		c := small(t, srv, framework.WithStateListener(seen.add))
		path := fresh(t)
		mustCreate(t, c, path, "")
		ops := make([]framework.TxnOp, framework.MinPacket/64)
		for i := range ops {
			ops[i] = framework.OpSet(path, nil, framework.AnyVersion)
		}
		_, err := c.Txn(t.Context(), ops...)
		wantErr(t, "Txn", err, framework.ErrTooLarge, framework.ErrUnknownOutcome)
		if framework.Retryable(err) {
			t.Errorf("%v is retryable", err)
		}
		if _, st, err := c.Get(t.Context(), path); err != nil || int(st.Version) != len(ops) {
			t.Errorf("version %d, %v, want %d", st.Version, err, len(ops))
		}
		synctest.Wait()
		seen.await(t, connecting, connected)
	})
}

// Where the directory can't be listed, the session's own ephemeral znodes can.
func TestAProtectedCreateInAnOversizedDirectory(t *testing.T) {
	t.Run("finds its znode", func(t *testing.T) {
		virtually(t, func(t *testing.T, srv *zkserver.Server) {
			dir, _ := oversized(t, srv)
			c := small(t, srv)
			lost := srv.Rules().Add(fault.Rule{Op: fault.Create, Action: fault.DropReply})
			var st framework.Stat
			path := must.Get(c.Create(t.Context(), dir+"/a-", nil, framework.Ephemeral(), framework.Sequential(), framework.Protected(), framework.StatTo(&st)))(t)
			await(t, lost.Hit(), "the reply that is lost")
			if st.EphemeralOwner != c.Session().ID {
				t.Errorf("%s is of session %#x", path, st.EphemeralOwner)
			}
			if own, err := c.Ephemerals(t.Context(), dir); err != nil || len(own) != 1 || own[0] != path {
				t.Errorf("ephemerals %v, %v, want %s alone", own, err, path)
			}
		})
	})
	t.Run("deletes an orphan", func(t *testing.T) {
		virtually(t, func(t *testing.T, srv *zkserver.Server) {
			dir, node := oversized(t, srv)
			var seen trail
			c := small(t, srv, framework.WithStateListener(seen.add))
			if _, ok, err := c.Exists(t.Context(), node); err != nil || !ok { // so that it knows of no later one
				t.Fatal(ok, err)
			}
			srv.Rules().Add(fault.Rule{Op: fault.Create, Action: fault.HoldReply})
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			_, err := c.Create(ctx, dir+"/a-", nil, framework.Ephemeral(), framework.Protected())
			wantErr(t, "Create", err, framework.ErrUnknownOutcome, context.DeadlineExceeded)
			srv.Cut()
			c.Discard(node) // another deletion
			<-time.After(10 * time.Second)
			if own, err := c.Ephemerals(t.Context(), dir); err != nil || len(own) > 0 || c.PendingDeletes() > 0 {
				t.Errorf("ephemerals %v, %v; %d deletions pending", own, err, c.PendingDeletes())
			}
			if _, ok, err := c.Exists(t.Context(), node); err != nil || ok {
				t.Errorf("the other deletion: exists %v, %v", ok, err)
			}
			seen.await(t, connecting, connected, suspended, connected)
		})
	})
	t.Run("of a server before 3.6", func(t *testing.T) {
		virtually(t, func(t *testing.T, srv *zkserver.Server) {
			dir, node := oversized(t, srv)
			old := &oldServer{dial: srv.Dial, unknown: []uint32{103}}
			core, logs := observer.New(zap.ErrorLevel)
			c := small(t, srv, framework.WithDialer(old.Dial), framework.WithLogger(zap.New(core)))
			srv.Rules().Add(fault.Rule{Op: fault.Create, Action: fault.DropReply})
			_, err := c.Create(t.Context(), dir+"/a-", nil, framework.Ephemeral(), framework.Protected())
			wantErr(t, "Create", err, framework.ErrUnknownOutcome, framework.ErrTooLarge, framework.ErrUnsupported)
			c.Discard(node)
			<-time.After(10 * time.Second)
			if n := c.PendingDeletes(); n != 1 {
				t.Errorf("%d deletions are pending, want that of the znode which can't be found", n)
			}
			if n := logs.FilterMessage("guaranteed delete refused, and repeated until its session ends").Len(); n != 1 {
				t.Errorf("%d lines say that a deletion is refused, want 1", n)
			}
			if _, ok, err := virtual(t, srv).Exists(t.Context(), node); err != nil || ok {
				t.Errorf("the other deletion: exists %v, %v", ok, err)
			}
		})
	})
}
