package interop_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

// An oracle knows who holds a lock, from the holders' own word, and notes
// whatever the lock should have prevented.
type oracle struct {
	mu        sync.Mutex // guards following
	holders   []entry
	turns     []entry // all that ever entered, in that order
	alone     int64   // greatest fence of those who held the lock alone
	latest    int64   // greatest fence of all
	faults    []string
	handovers int // between two libraries
}

// An entry is one holder's stay.
type entry struct {
	who     string // library and process
	library string
	fence   int64
	shared  bool // with others who share
}

func (e entry) String() string { return fmt.Sprintf("%s with fence %d", e.who, e.fence) }

// excludes reports whether the two may not hold the lock at one time.
func (e entry) excludes(other entry) bool { return !e.shared || !other.shared }

// enter records that e holds the lock.
func (o *oracle) enter(e entry) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, holder := range o.holders {
		if e.excludes(holder) {
			o.faults = append(o.faults, fmt.Sprintf("exclusion: %v was granted beside %v", e, holder))
		}
	}
	before := o.latest // who shares may be granted in another order than that of the queue
	if e.shared {
		before = o.alone
	}
	if e.fence <= before {
		o.faults = append(o.faults, fmt.Sprintf("monotonic fence: %v after %d", e, before))
	}
	o.latest = max(o.latest, e.fence)
	if !e.shared {
		o.alone = max(o.alone, e.fence)
	}
	if n := len(o.turns); n > 0 && o.turns[n-1].library != e.library {
		o.handovers++
	}
	o.holders, o.turns = append(o.holders, e), append(o.turns, e)
}

// leave records that e will release the lock now.
func (o *oracle) leave(e entry) {
	o.mu.Lock()
	defer o.mu.Unlock()
	i := slices.Index(o.holders, e)
	if i < 0 {
		o.faults = append(o.faults, fmt.Sprintf("%v leaves, who has not entered", e))
		return
	}
	o.holders = slices.Delete(o.holders, i, i+1)
}

// check fails the test for each fault.
func (o *oracle) check(t testing.TB) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, fault := range o.faults {
		t.Error(fault)
	}
	if len(o.holders) > 0 {
		t.Errorf("still inside: %v", o.holders)
	}
}

// The oracle itself must see what goes wrong.
func TestOracle(t *testing.T) {
	t.Parallel()
	reader := func(fence int64) entry { return entry{who: "reader", fence: fence, shared: true} }
	writer := func(fence int64) entry { return entry{who: "writer", fence: fence} }
	for _, c := range []struct {
		name string
		does func(o *oracle)
		want string // the start of the first fault; "" for none
	}{
		{"sees nothing wrong in turns", func(o *oracle) {
			o.enter(writer(1))
			o.leave(writer(1))
			o.enter(writer(2))
		}, ""},
		{"sees nothing wrong in readers side by side, in any order", func(o *oracle) {
			o.enter(reader(2))
			o.enter(reader(1))
		}, ""},
		{"sees two holders", func(o *oracle) {
			o.enter(writer(1))
			o.enter(writer(2))
		}, "exclusion: "},
		{"sees a reader beside a writer", func(o *oracle) {
			o.enter(writer(1))
			o.enter(reader(2))
		}, "exclusion: "},
		{"sees a writer beside a reader", func(o *oracle) {
			o.enter(reader(1))
			o.enter(writer(2))
		}, "exclusion: "},
		{"sees a fence that does not grow", func(o *oracle) {
			o.enter(writer(1))
			o.leave(writer(1))
			o.enter(writer(1))
		}, "monotonic fence: "},
		{"sees a writer's fence below a reader's", func(o *oracle) {
			o.enter(reader(2))
			o.leave(reader(2))
			o.enter(writer(1))
		}, "monotonic fence: "},
		{"sees a stranger leave", func(o *oracle) { o.leave(writer(1)) }, "writer "},
	} {
		t.Run(c.name, func(t *testing.T) {
			var o oracle
			c.does(&o)
			switch {
			case c.want == "" && len(o.faults) > 0:
				t.Errorf("faults %q, want none", o.faults)
			case c.want != "" && (len(o.faults) == 0 || !strings.HasPrefix(o.faults[0], c.want)):
				t.Errorf("faults %q, want one that begins with %q", o.faults, c.want)
			}
		})
	}
}
