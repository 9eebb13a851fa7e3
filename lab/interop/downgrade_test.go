package interop_test

import (
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
)

// sides returns both sides of one read/write lock, for one owner of docent's.
func sides(t testing.TB, path string) (write, read *native) {
	t.Helper()
	c := newClient(t)
	rw := readWrite(t, c, path)
	write = newNative(t, rw.Write())
	write.client = c
	copied := *write // the owner included
	copied.locker, copied.shared = rw.Read(), true
	return write, &copied
}

// foreignSides returns both sides of one read/write lock, for one thread of Curator's.
func foreignSides(t testing.TB, path string) (write, read *foreigner) {
	t.Helper()
	a := newActor(t, curator)
	write, read = a.contender(writers.foreign, path), a.contender(readers.foreign, path)
	read.shared = true
	return write, read
}

// A writer of docent's that goes on as a reader keeps the others' writers out, which
// had been waiting before.
func TestDocentDowngrades(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		library          *library
		writers, readers kind
	}{
		{curator, writers, readers},
		{kazoo, renamed(writers, "write-renamed"), renamed(readers, "read-renamed")},
	} {
		sub(t, "beside "+c.library.name, func(t *testing.T, path string) {
			write, read := sides(t, path)
			mustLock(t, write)
			writer, reader := c.writers.foreigner(t, c.library, path), c.readers.foreigner(t, c.library, path)
			queue := queueUp(t, newClient(t), path, writer, reader)
			mustLock(t, read)
			mustUnlock(t, write)
			mustWait(t, queue[0], "a writer behind a writer that became a reader")
			mustUnlock(t, read)
			mustGet(t, queue[0], "the writer")
			mustWait(t, queue[1], "the reader behind that writer")
			mustUnlock(t, writer)
			mustGet(t, queue[1], "the reader")
			mustUnlock(t, reader)
		})
	}
}

// A Curator writer continues as a reader. CURATOR-621 is in 5.4, and apache/curator#445 repairs
// it. With it, the read node goes to the end of the queue, behind a waiting writer. That writer,
// of any library, is granted the lock although Curator takes itself for a reader. In a repaired
// Curator the read node has the number of its write node, and excludes docent's writer. The test
// distinguishes them by the numbers.
func TestCuratorDowngrades(t *testing.T) {
	t.Parallel()
	sub(t, "A writer of docent's waits", func(t *testing.T, path string) {
		write, read := foreignSides(t, path)
		mustLock(t, write)
		writer := writers.native(t, path)
		queue := queueUp(t, writer.client, path, writer)
		mustLock(t, read)
		participants := must.Get(readWrite(t, writer.client, path).Participants(t.Context()))(t)
		sequences := make(map[string]int64) // of Curator's
		for _, p := range participants {
			if p.Session == write.session {
				sequences[p.Kind] = p.Sequence
			}
		}
		if len(sequences) != 2 {
			t.Fatalf("docent sees %+v, want Curator's writer and reader among them", participants)
		}
		mustUnlock(t, write)
		if sequences["__READ__"] != sequences["__WRIT__"] {
			mustGet(t, queue[0], "docent's writer, as this Curator has it")
			t.Log("this Curator has CURATOR-621: its downgrade lets a waiting writer in")
			return
		}
		mustWait(t, queue[0], "docent's writer behind a writer that became a reader")
		mustUnlock(t, read)
		mustGet(t, queue[0], "docent's writer")
	})
	sub(t, "Nobody waits", func(t *testing.T, path string) {
		write, read := foreignSides(t, path)
		mustLock(t, write)
		mustLock(t, read)
		mustUnlock(t, write)
		mustBeRefused(t, writers.native(t, path), 0)
		reader := readers.native(t, path)
		mustLock(t, reader)
		writer := lockLater(t, writers.native(t, path))
		mustUnlock(t, reader)
		mustWait(t, writer, "docent's writer beside a reader of Curator's")
		mustUnlock(t, read)
		mustGet(t, writer, "docent's writer")
	})
	sub(t, "As a mended Curator puts it on the wire", func(t *testing.T, path string) {
		write, _ := foreignSides(t, path)
		mustLock(t, write)
		node := nodeOf(t, path, write)
		writer := writers.native(t, path)
		queue := queueUp(t, writer.client, path, writer)
		c := newClient(t)
		readNode := path + "/_c_00000000-0000-4000-8000-000000000000-__READ__" + node[len(node)-10:]
		must.Get(c.Create(t.Context(), readNode, nil, framework.Ephemeral()))(t)
		mustUnlock(t, write)
		mustWait(t, queue[0], "docent's writer behind a writer that became a reader")
		must.OK(t, c.Delete(t.Context(), readNode))
		mustGet(t, queue[0], "docent's writer")
	})
}
