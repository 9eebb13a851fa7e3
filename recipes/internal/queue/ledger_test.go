package queue

import (
	"fmt"
	"testing"

	"github.com/docent-go/docent/framework"
)

func rwQueue() *Queue {
	return &Queue{Kinds: []string{"W-", "R-"}, Ahead: readersShare, Heirs: func(gone, waiting Node) bool {
		return gone.Kind == "W-" && waiting.Kind == "W-"
	}}
}

func ledgerOf(q *Queue) *ledger { return &ledger{heirs: q.Heirs, covered: make(map[string]int)} }

// contender returns a node of the queue.
func contender(t *testing.T, q *Queue, kind string, number int) Node {
	t.Helper()
	node, ok := parse(fmt.Sprintf("x-%s%010d", kind, number), q.Kinds)
	if !ok {
		t.Fatal("no contender")
	}
	return node
}

// TestWhatArrivedInAnEarlierDirectoryDoesNotCount has the maker of a base set its guard late: what others created
// before that was in a directory that has been removed since.
func TestWhatArrivedInAnEarlierDirectoryDoesNotCount(t *testing.T) {
	q := &Queue{Kinds: []string{"lock-"}, Ahead: Next}
	l := ledgerOf(q)
	p := l.plan(true) // and is about to set the guard
	if p.makes == nil {
		t.Fatal("no base")
	}
	old := contender(t, q, "lock-", 1)
	l.arrive(q, old, 3)
	l.pass(old)

	// The directory is removed and made anew.
	maker := contender(t, q, "lock-", 0)
	l.arrive(q, maker, 8)
	found := q.listing([]string{maker.Name}, framework.Stat{Czxid: 7, Pzxid: 8, Cversion: 1, NumChildren: 1})
	l.conclude(&watchOnIt{czxid: 7}, &found)

	// Somebody else creates number 1, and the session number 2.
	l.pass(maker)
	next := contender(t, q, "lock-", 2)
	l.arrive(q, next, 12)
	if p, ok := l.findNew(q, next); ok && p.ahead == "" {
		t.Error("granted beside number 1")
	}
}

// TestAnOlderListingDoesNotReplaceANewerOne has a listing processed late, which was made before a writer's heir.
func TestAnOlderListingDoesNotReplaceANewerOne(t *testing.T) {
	q := rwQueue()
	l := ledgerOf(q)
	writer, heir := contender(t, q, "W-", 5), contender(t, q, "R-", 5)
	reader, last := contender(t, q, "R-", 7), contender(t, q, "W-", 8)
	l.guard = &watchOnIt{czxid: 1}
	older := q.listing([]string{writer.Name}, framework.Stat{Czxid: 1, Pzxid: 50, Cversion: 11, NumChildren: 1})
	l.renew(q.listing([]string{writer.Name, heir.Name, reader.Name}, framework.Stat{Czxid: 1, Pzxid: 70, Cversion: 13, NumChildren: 3}))
	l.renew(older)
	l.pass(writer)
	l.arrive(q, last, 90)
	l.pass(reader)
	if p, ok := l.find(q, last); ok && p.ahead == "" {
		t.Error("granted beside the heir")
	}
}
