package lock_test

import (
	"strings"
	"testing"

	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zktest"
)

func TestReadWriteGrantsInTheOrderOfTheQueue(t *testing.T) {
	t.Parallel()
	const path = "/rw/order"
	server := zktest.Shared(t)
	c := newClient(t, server.Addr())
	rw := newReadWrite(t, c, path)
	lease := mustLockAs(asOwner(t, "writer 1"), t, rw.Write())
	reader2 := queueUp(asOwner(t, "reader 2"), t, rw.Read(), c, path, 2)
	reader3 := queueUp(asOwner(t, "reader 3"), t, rw.Read(), c, path, 3)
	writer4 := queueUp(asOwner(t, "writer 4"), t, rw.Write(), c, path, 4)
	reader5 := queueUp(asOwner(t, "reader 5"), t, rw.Read(), c, path, 5)
	writer6 := queueUp(asOwner(t, "writer 6"), t, rw.Write(), c, path, 6)
	mustWait(t, "everybody behind a writer", reader2, reader3, writer4, reader5, writer6)

	mustRelease(t, lease)
	first, second := granted(t, reader2, "the first reader"), granted(t, reader3, "the second reader")
	mustWait(t, "a writer behind readers, and whoever is behind it", writer4, reader5, writer6)
	mustRelease(t, second)
	mustWait(t, "a writer behind a reader", writer4)
	mustRelease(t, first)

	lease = granted(t, writer4, "the writer behind the readers")
	mustWait(t, "everybody behind the second writer", reader5, writer6)
	mustRelease(t, lease)
	lease = granted(t, reader5, "the reader between writers")
	mustWait(t, "the last writer", writer6)
	mustRelease(t, lease)
	mustRelease(t, granted(t, writer6, "the last writer"))
	awaitContenders(t, c, path, 0)
}

// TestAReaderIgnoresLaterWriters: kazoo issue 649, where a reader waited for a
// writer that had come later and waited for it.
func TestAReaderIgnoresLaterWriters(t *testing.T) {
	t.Parallel()
	const path = "/rw/later-writer"
	c := newClient(t, zktest.Shared(t).Addr())
	rw := newReadWrite(t, c, path)
	held := mustLockAs(asOwner(t, "writer 1"), t, rw.Write())
	reader := queueUp(asOwner(t, "reader"), t, rw.Read(), c, path, 2)
	writer := queueUp(asOwner(t, "writer 2"), t, rw.Write(), c, path, 3)
	mustRelease(t, held)
	lease := granted(t, reader, "the reader")
	mustWait(t, "the later writer", writer)
	mustRelease(t, lease)
	mustRelease(t, granted(t, writer, "the later writer"))
}

// TestAReaderBehindAQueuedWriterWaits: a stream of readers does not keep a writer out forever
// (Redisson issue 5379).
func TestAReaderBehindAQueuedWriterWaits(t *testing.T) {
	t.Parallel()
	const path = "/rw/fair"
	c := newClient(t, zktest.Shared(t).Addr())
	rw := newReadWrite(t, c, path)
	held := mustLockAs(asOwner(t, "reader 1"), t, rw.Read())
	shared := mustLockAs(asOwner(t, "reader 2"), t, rw.Read())
	writer := queueUp(asOwner(t, "writer"), t, rw.Write(), c, path, 3)
	mustBeHeld(asOwner(t, "reader 3"), t, rw.Read())
	reader := queueUp(asOwner(t, "reader 4"), t, rw.Read(), c, path, 4)
	mustRelease(t, held)
	mustWait(t, "whoever came after the second reader", writer, reader)
	mustRelease(t, shared)
	lease := granted(t, writer, "the writer")
	mustWait(t, "the reader behind it", reader)
	mustRelease(t, lease)
	mustRelease(t, granted(t, reader, "the reader"))
}

// TestAWritersReleaseWakesOnlyTheReadersBehindIt counts what others ask the
// server: Curator's readers all watch the first writer.
func TestAWritersReleaseWakesOnlyTheReadersBehindIt(t *testing.T) {
	t.Parallel()
	const path = "/rw/herd"
	server := zktest.Shared(t)
	c := newClient(t, server.Addr())
	rw := newReadWrite(t, c, path)
	held := mustLockAs(asOwner(t, "writer 1"), t, rw.Write())
	reader := queueUp(asOwner(t, "reader 2"), t, rw.Read(), c, path, 2)
	writer := queueUp(asOwner(t, "writer 3"), t, rw.Write(), c, path, 3)
	behind, proxy := behindProxy(t, server)
	var others []<-chan result
	for n := range 4 {
		others = append(others, queueUp(asOwner(t, "reader"), t, newReadWrite(t, behind, path).Read(), c, path, 4+n))
		// Each reader watches its own znode; the first one also watches both writers, for all.
		zktest.Eventually(t, generous, "its watches to be set", func() bool { return proxy.Count(fault.GetData) == 3+n })
	}
	proxy.ResetRequests()
	mustRelease(t, held)
	lease := granted(t, reader, "the reader behind the first writer")
	mustRelease(t, lease)
	lease = granted(t, writer, "the second writer")
	for _, r := range proxy.Requests() {
		reads := r.Op == fault.GetChildren || r.Op == fault.GetData || r.Op == fault.Exists
		if reads && strings.HasPrefix(r.Path, path) { // the client's heartbeat reads elsewhere
			t.Errorf("%v of %s by a reader that had nothing to hope for", r.Op, r.Path)
		}
	}
	mustRelease(t, lease)
	for _, done := range others {
		mustRelease(t, granted(t, done, "a reader behind the second writer"))
	}
}
