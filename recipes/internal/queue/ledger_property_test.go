package queue

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/docent-go/docent/framework"
)

// TestTheLedgerVouchesOnlyForWhatIsSo has random things happen in a directory, and a ledger
// hear of them as a session's would: replies to creations and events in their order, everything else
// whenever it is processed. What it says of a node must then have been so at the server.
func TestTheLedgerVouchesOnlyForWhatIsSo(t *testing.T) {
	vouched := 0   // grants that no listing was needed for
	for range 20 { // the default number of checks is small
		rapid.Check(t, func(t *rapid.T) {
			d := newDirectory(t)
			steps := []func(*rapid.T){ // what is there twice happens twice as often
				d.enter, d.enter, d.watch, d.watch, d.send, d.send, d.list, d.process, d.process, d.deliver, d.deliver,
				d.foreigner, d.forger, d.heir, d.delete, d.delete, d.pass, d.pass, d.replace, d.lose,
				d.attempt, d.attempt, d.leave,
			}
			for range rapid.IntRange(50, 150).Draw(t, "steps") {
				rapid.SampledFrom(steps).Draw(t, "step")(t)
				vouched += d.check()
			}
		})
	}
	if vouched == 0 {
		t.Error("nothing was ever known without a listing: nothing was tested")
	}
}

// A directory is what the server has of one, and how far a session has heard of it.
type directory struct {
	t      *rapid.T
	queue  *Queue
	ledger *ledger

	zxid     int64
	czxid    int64
	pzxid    int64 // of the last child that came or went
	counter  int32
	children map[string]*child
	notices  []func() // to be delivered in order
	tasks    []func() // to be done at any time
	entering []*entering
	focus    *entering // nothing is done for another; nil for none
	guards   []*watchOnIt
	own      []*child
	serial   int
}

// A child stands, or stood, in the directory.
type child struct {
	node     Node
	listed   bool // its attempt lists, so it asks nobody
	free     bool // nobody was ahead at some moment at which it stood
	only     bool // it was the only child when it was created
	arrived  bool // the reply to its creation was delivered
	goneTold bool // its deletion was
	severed  bool // the connection was lost that would have told of that
	other    bool // it does not contend
}

// An entering is an attempt between its plan and the end of what it asks for.
type entering struct {
	plan  plan
	guard *watchOnIt
	child *child
	found *listing

	watched  bool // the guard was set, or could not be
	listing  bool // that has been asked for
	together bool // it is created along with others: the ledger hears of it at some time after the reply
}

// A watchOnIt is a guard.
type watchOnIt struct {
	czxid int64
	fired bool // at the server
	told  bool
}

func (w *watchOnIt) Stands() bool                 { return !w.told }
func (w *watchOnIt) Stat() (framework.Stat, bool) { return framework.Stat{Czxid: w.czxid}, true }
func (w *watchOnIt) Close()                       {}

func newDirectory(t *rapid.T) *directory {
	d := &directory{t: t, children: make(map[string]*child), zxid: 1, czxid: 1}
	d.queue = &Queue{Kinds: []string{"W-", "R-"}, Ahead: readersShare, Heirs: func(gone, waiting Node) bool {
		return gone.Kind == "W-" && waiting.Kind == "W-"
	}}
	if rapid.Bool().Draw(t, "mutex") {
		d.queue = &Queue{Kinds: []string{"lock-"}, Ahead: Next}
	}
	d.ledger = &ledger{heirs: d.queue.Heirs, covered: make(map[string]int)}
	return d
}

// readersShare is the Ahead of a read/write lock.
func readersShare(nodes []Node, own int) int {
	if nodes[own].Kind == "W-" {
		return own - 1
	}
	for i := own - 1; i >= 0; i-- {
		if nodes[i].Kind == "W-" && nodes[i].Sequence != nodes[own].Sequence {
			return i
		}
	}
	return -1
}

// enter plans an attempt.
func (d *directory) enter(t *rapid.T) {
	e := &entering{plan: d.ledger.plan(rapid.Bool().Draw(t, "crowded"))}
	e.together = rapid.IntRange(0, 4).Draw(t, "together") == 0
	d.entering = append(d.entering, e)
}

// watch sets the guard that an attempt is to set, whenever it gets to that.
func (d *directory) watch(t *rapid.T) {
	if e := d.pick(t, func(e *entering) bool { return e.plan.makes != nil && !e.watched }); e != nil {
		e.watched = true
		if rapid.IntRange(0, 9).Draw(t, "guard") > 0 {
			e.guard = &watchOnIt{czxid: d.czxid}
			d.guards = append(d.guards, e.guard)
		}
	}
}

// foreigner creates a node of another session.
func (d *directory) foreigner(t *rapid.T) {
	if rapid.IntRange(0, 3).Draw(t, "seldom") == 0 {
		d.create(rapid.SampledFrom(append([]string{"note-"}, d.queue.Kinds...)).Draw(t, "kind"), nil)
	}
}

// forger creates a contender by hand, with a number that the counter has not come to.
func (d *directory) forger(t *rapid.T) {
	if rapid.IntRange(0, 7).Draw(t, "seldom") == 0 {
		d.add(rapid.SampledFrom(d.queue.Kinds).Draw(t, "kind"), d.counter+rapid.Int32Range(1, 5).Draw(t, "beyond"))
	}
}

// send creates the node of an attempt.
func (d *directory) send(t *rapid.T) {
	if e := d.pick(t, func(e *entering) bool { return e.child == nil && (e.plan.makes == nil || e.watched) }); e != nil {
		e.child = d.create(rapid.SampledFrom(d.queue.Kinds).Draw(t, "kind"), e)
		e.child.listed = e.plan.list
	}
}

// list lists for an attempt, behind its creation.
func (d *directory) list(t *rapid.T) {
	if e := d.pick(t, func(e *entering) bool { return e.child != nil && e.plan.list && !e.listing }); e != nil {
		e.listing = true
		found := d.queue.listing(slices.Collect(maps.Keys(d.children)), framework.Stat{
			Czxid: d.czxid, Pzxid: d.pzxid, Cversion: 2*d.counter - int32(len(d.children)), NumChildren: int32(len(d.children)),
		})
		d.notices = append(d.notices, func() { e.found = &found })
	}
}

// process ends an attempt's entering, maybe with nothing to show for it.
func (d *directory) process(t *rapid.T) {
	e := d.pick(t, func(e *entering) bool {
		return !e.plan.list || e.found != nil || rapid.IntRange(0, 9).Draw(t, "fails") == 0
	})
	if e == nil {
		return
	}
	d.entering = slices.DeleteFunc(d.entering, func(other *entering) bool { return other == e })
	switch {
	case e.plan.makes != nil:
		var set guard
		if e.guard != nil {
			set = e.guard
		}
		d.ledger.conclude(set, e.found)
	case e.found != nil:
		d.ledger.renew(*e.found)
	}
}

func (d *directory) pick(t *rapid.T, fit func(*entering) bool) *entering {
	var fits []*entering
	for _, e := range d.entering {
		if (d.focus == nil || d.focus == e) && fit(e) {
			fits = append(fits, e)
		}
	}
	if len(fits) == 0 {
		return nil
	}
	return rapid.SampledFrom(fits).Draw(t, "attempt")
}

// create creates a sequential node, whose reply is told to the session if it is of an attempt.
func (d *directory) create(kind string, of *entering) *child {
	c := d.add(kind, d.counter)
	if of == nil {
		return c
	}
	d.own = append(d.own, c)
	node, czxid := c.node, d.zxid
	if of.together {
		d.notices = append(d.notices, func() {
			d.tasks = append(d.tasks, func() {
				if !c.arrived {
					c.arrived = true
					d.ledger.arriveLate(d.queue, node, czxid, of.plan)
				}
			})
		})
		return c
	}
	d.notices = append(d.notices, func() {
		c.arrived = true
		d.ledger.arrive(d.queue, node, czxid)
	})
	return c
}

func (d *directory) add(kind string, number int32) *child {
	d.zxid++
	d.serial++
	d.pzxid = d.zxid
	name := fmt.Sprintf("%d-%s%010d", d.serial, kind, number)
	node, contends := parse(name, d.queue.Kinds)
	node.Name = name
	c := &child{node: node, only: len(d.children) == 0, other: !contends}
	d.children[node.Name] = c
	d.counter++
	d.settle()
	return c
}

// heir creates a reader with the number of a writer that stands.
func (d *directory) heir(t *rapid.T) {
	var writers []string
	for name, c := range d.children {
		if c.node.Kind == "W-" {
			writers = append(writers, name)
		}
	}
	if len(writers) > 0 {
		slices.Sort(writers)
		d.add("R-", d.children[rapid.SampledFrom(writers).Draw(t, "writer")].node.Sequence)
	}
}

// delete deletes any child, of which the session may be told.
func (d *directory) delete(t *rapid.T) {
	if len(d.children) == 0 {
		return
	}
	names := slices.Sorted(maps.Keys(d.children))
	d.remove(d.children[rapid.SampledFrom(names).Draw(t, "child")])
}

func (d *directory) remove(c *child) {
	d.zxid++
	d.pzxid = d.zxid
	delete(d.children, c.node.Name)
	d.settle()
	if c.other {
		return
	}
	d.notices = append(d.notices, func() { c.goneTold = true })
	d.tasks = append(d.tasks, func() {
		if c.goneTold {
			d.ledger.pass(c.node)
		}
	})
}

// pass processes that a child has gone, if that has been told by now.
func (d *directory) pass(t *rapid.T) {
	if len(d.tasks) > 0 {
		i := rapid.IntRange(0, len(d.tasks)-1).Draw(t, "task")
		d.tasks[i]()
	}
}

// deliver delivers what the server has told.
func (d *directory) deliver(t *rapid.T) {
	for range rapid.IntRange(1, 4).Draw(t, "notices") {
		if len(d.notices) == 0 {
			return
		}
		d.notices[0]()
		d.notices = d.notices[1:]
	}
}

// replace removes the directory if it is empty, and makes a new one.
func (d *directory) replace(*rapid.T) {
	if len(d.children) > 0 {
		return
	}
	d.zxid += 2
	d.czxid, d.pzxid, d.counter = d.zxid, d.zxid, 0
	d.fire()
}

// lose breaks the connection: the rest of what is on its way is lost.
func (d *directory) lose(t *rapid.T) {
	if rapid.IntRange(0, 3).Draw(t, "seldom") > 0 {
		return
	}
	d.notices = nil
	for _, w := range d.guards {
		w.fired, w.told = true, true
	}
	for _, c := range d.own {
		c.severed = c.severed || d.children[c.node.Name] != c
	}
}

func (d *directory) fire() {
	for _, w := range d.guards {
		if !w.fired {
			w.fired = true
			d.notices = append(d.notices, func() { w.told = true })
		}
	}
}

// settle takes note of who has nobody ahead now.
func (d *directory) settle() {
	nodes := Sort(slices.Collect(maps.Keys(d.children)), d.queue.Kinds...)
	for i, n := range nodes {
		if d.queue.Ahead(nodes, i) < 0 {
			d.children[n.Name].free = true
		}
	}
}

// attempt has one attempt go all the way, undisturbed.
func (d *directory) attempt(t *rapid.T) {
	d.enter(t)
	d.focus = d.entering[len(d.entering)-1]
	d.watch(t)
	d.send(t)
	d.list(t)
	d.tell()
	d.process(t)
	d.focus = nil
}

// tell delivers all that the server has told.
func (d *directory) tell() {
	for len(d.notices) > 0 {
		d.notices[0]()
		d.notices = d.notices[1:]
	}
}

// leave has all leave, and has the session see them go, maybe the directory with them.
func (d *directory) leave(t *rapid.T) {
	for _, name := range slices.Sorted(maps.Keys(d.children)) {
		d.remove(d.children[name])
	}
	if rapid.Bool().Draw(t, "replace") {
		d.replace(t)
	}
	d.tell()
	for _, task := range d.tasks {
		task()
	}
}

// check returns how many nodes the ledger vouches for that their attempts didn't list for.
func (d *directory) check() (vouched int) {
	for _, c := range d.own {
		if !c.arrived {
			continue
		}
		if p, ok := d.ledger.find(d.queue, c.node); ok && p.ahead == "" && !c.free && !c.goneTold && !c.severed { // else the watch on it tells
			d.t.Fatalf("find: %s is said to have nobody ahead, and always had", c.node.Name)
		}
		p, ok := d.ledger.findNew(d.queue, c.node)
		if ok && p.ahead == "" && !c.free {
			d.t.Fatalf("findNew: %s is said to have nobody ahead, and always had", c.node.Name)
		}
		if ok && p.ahead == "" && !c.listed {
			vouched++
		}
		if d.ledger.alone(c.node) && !c.only {
			d.t.Fatalf("%s is said to have been alone, and was not", c.node.Name)
		}
	}
	return vouched
}
