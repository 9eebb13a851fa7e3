package lock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
)

// TestDowngradeWhoseWriteNodeIsDeleted deletes the write node before its read node is created, and
// so grants the lock to another writer.
func TestDowngradeWhoseWriteNodeIsDeleted(t *testing.T) {
	t.Parallel()
	for name, withdrawn := range map[string]bool{"waits for the next writer": false, "leaves no orphan": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const path = "/downgrade-beside"
				srv := virtualServer(t)
				c, other := virtualClient(t, srv), virtualClient(t, srv)
				rw := newReadWrite(t, c, path)
				one := asOwner(t, "one")
				writing := mustLockAs(one, t, rw.Write())
				writer := lockLater(t.Context(), newReadWrite(t, other, path).Write())
				synctest.Wait()
				entering := srv.Rules().Add(fault.Rule{
					Session: c.Session().ID, Op: fault.Create, Path: path + "/*", Action: fault.HoldRequest,
				})
				reader := lockLater(one, rw.Read())
				<-entering.Hit()
				deleteNode(t, other, writing.Node())
				next := granted(t, writer, "the next writer")
				entering.Release()
				await(time.Second)
				if withdrawn {
					if left := znodesBelow(srv, path); len(left) != 2 {
						t.Errorf("%q, want the writer's znode and one of the reader's", left)
					}
				} else if len(reader) > 0 {
					t.Error("a reader is granted beside a writer")
				}
				mustRelease(t, next)
				mustRelease(t, granted(t, reader, "the reader"))
				_ = writing.Release(t.Context()) // lost long ago
			})
		})
	}
}

// TestDowngradeFence: the read lease has the fence of the write lease, because a writer behind it
// has a smaller czxid than the read node.
func TestDowngradeFence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const path = "/downgrade-beside/fence"
		srv := virtualServer(t)
		rw, others := newReadWrite(t, virtualClient(t, srv), path), newReadWrite(t, virtualClient(t, srv), path)
		one := asOwner(t, "one")
		writing := mustLockAs(one, t, rw.Write())
		writer := lockLater(t.Context(), others.Write())
		synctest.Wait()
		reading := mustLockAs(one, t, rw.Read())
		first, second := fenceOf(t, writing), fenceOf(t, reading)
		mustRelease(t, writing)
		mustRelease(t, reading)
		next := granted(t, writer, "the next writer")
		if third := fenceOf(t, next); first != second || second >= third {
			t.Errorf("fences %d, %d and %d; want the first twice, and then a greater one", first, second, third)
		}
		mustRelease(t, next)
	})
}

func fenceOf(t *testing.T, l *lock.Lease) int64 {
	t.Helper()
	fence := l.Fence()
	return fence
}
