package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/lab/history"
	"github.com/docent-go/docent/recipes/group"
	"github.com/docent-go/docent/recipes/node"
)

// All workers keep znodes at a few paths, at which one of them at a time can have one, and each worker
// is a member of one group. The id of a member is that of its slot, so that a worker that was killed is
// followed by one with the same id.
const keptRoot, groupRoot = "/kept", "/group"

// ownDirs are where each znode belongs to one process, and no other one may change or delete it.
var ownDirs = []string{keptRoot, groupRoot, servicesRoot + "/" + serviceName, partitionRoot + "/members"}

const (
	keptKnown  = "had a znode kept at a contended path"
	keptTaken  = "found the znode of another client at a contended path"
	joinedOnce = "joined a group"
	sawGroup   = "saw itself in a group"
)

// The kinds of reports about a kept znode, at the Path: it begins, its data are written, and it is
// closed without an error. Data that were written are in the Znode.
const (
	keeping history.Kind = "keeping"
	wrote   history.Kind = "wrote"
	closed  history.Kind = "closed"
)

func (w *worker) keepers() []errand {
	return []errand{{"keeper a", w.keeper, longRest}, {"keeper b", w.keeper, longRest}, {"joiner", w.joiner, longRest}}
}

// keeper keeps a znode for a while, at a path that others want, too, but no other keeper of this worker.
func (w *worker) keeper(ctx context.Context, t task) {
	at := path.Join(keptRoot, t.owner[len(t.owner)-1:]+strconv.Itoa(t.rand.IntN(2)))
	data := fmt.Appendf(nil, "%s %d", t.owner, t.rand.Uint64())
	w.recordKept(keeping, at, nil)
	n, err := node.New(w.client, at, data)
	if err != nil {
		panic(err)
	}
	w.keep(ctx, t, n, data)
}

// joiner is a member of the group for a while, and sees itself there.
func (w *worker) joiner(ctx context.Context, t task) {
	g, err := group.New(w.client, groupRoot)
	if err != nil {
		panic(err)
	}
	id, _, _ := strings.Cut(w.Name, ".")
	data := fmt.Appendf(nil, "%s %d", w.Name, t.rand.Uint64())
	w.recordKept(keeping, path.Join(groupRoot, id), nil)
	n, err := g.Join(id, data)
	if err != nil {
		panic(err)
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	if n.Await(limited) == nil {
		w.did(joinedOnce)
		// The cache of the group is behind the znode by a moment.
		if n.Exists() && await(limited, endWait, func() bool {
			members := maps.Collect(g.Members())
			return members[id] != nil || !n.Exists()
		}) {
			w.did(sawGroup)
		} else if limited.Err() == nil {
			w.found("every member is seen", "the group lacks %s, which has joined, for %v", id, endWait)
		}
	}
	cancel()
	w.keep(ctx, t, n, data)
	limited, cancel = context.WithTimeout(context.Background(), treeLimit)
	defer cancel()
	_ = g.Close(limited) // the rest continues in the background
}

// keep has the znode for a while, writes to it, and closes it.
func (w *worker) keep(ctx context.Context, t task, n *node.Node, data []byte) {
	limited, cancel := context.WithTimeout(ctx, t.between(time.Millisecond, 2*longestSession))
	defer cancel()
	err := n.Await(limited)
	for errors.Is(err, node.ErrTaken) && limited.Err() == nil {
		w.did(keptTaken)
		pause(limited, t.between(time.Millisecond, longRest))
		err = n.Await(limited)
	}
	for err == nil {
		w.recordKept(wrote, n.Path(), data)
		w.did(keptKnown)
		pause(limited, t.between(time.Millisecond, 2*time.Second))
		if limited.Err() != nil {
			break
		}
		data = fmt.Appendf(nil, "%s %d", t.owner, t.rand.Uint64())
		err = n.Set(limited, data)
	}
	at := n.Path()
	closing, cancel := context.WithTimeout(context.Background(), t.between(time.Millisecond, treeLimit))
	defer cancel()
	if err := n.Close(closing); err == nil && at != "" {
		w.recordKept(closed, at, nil)
	}
}

func (w *worker) recordKept(kind history.Kind, at string, data []byte) {
	w.emit(report{Record: history.Record{Kind: kind, Group: at}, Path: at, Znode: shown{Path: at, Data: fingerprint(data)}})
}

// checkKept is the validator of kept znodes, once all is well.
func (r *run) checkKept(o *oracle) {
	for _, fault := range o.badKept(r.board.reported(keeping, wrote, closed, expired)) {
		r.fail(errors.New(fault))
	}
}

// badKept returns what is wrong with kept znodes.
func (o *oracle) badKept(reports []report) (faults []string) {
	for _, dir := range ownDirs {
		for _, at := range o.children(dir) {
			for _, v := range o.versions[at] {
				if fault := o.judgeOwn(v); fault != "" {
					faults = append(faults, fault)
				}
			}
		}
	}
	for _, r := range reports {
		switch {
		case r.Kind == wrote && !o.wasWritten(r):
			faults = append(faults, fmt.Sprintf("kept: %s wrote %s, and the logs have no such data by then", r.Client, r.Path))
		case r.Kind == closed:
			if fault := o.judgeClosed(r, reports); fault != "" {
				faults = append(faults, fault)
			}
		}
	}
	return faults
}

// judgeOwn is the validator of "another's znode": no process changes or deletes the ephemeral znode of
// another one.
func (o *oracle) judgeOwn(v version) string {
	owner, by := o.clients[v.owner], o.clients[v.by]
	if v.owner == 0 || v.until == unended || v.by == v.owner || by == "" || owner == by {
		return ""
	}
	what := "changed"
	if v.deleted {
		what = "deleted"
	}
	return fmt.Sprintf("another's znode: %s %s %s of %s (session %#x) at %#x", by, what, v.path, owner, v.owner, v.until)
}

// wasWritten reports whether the logs have the data by the time of the report.
func (o *oracle) wasWritten(r report) bool {
	return slices.ContainsFunc(o.versions[r.Path], func(v version) bool {
		return v.data == r.Znode.Data && o.isOf(v.owner, r.Client) && v.wall <= r.Wall
	})
}

// lossReport is how long the report of a lost session may take, which another goroutine writes than the
// one whose Close returned because of the loss.
const lossReport = time.Second

// judgeClosed is the validator of "gone": after a Close without an error, the client has no znode at the
// path until it begins to keep one again. The znode of a session that the client has lost may exist until
// the servers end that session.
func (o *oracle) judgeClosed(r report, reports []report) string {
	again, lost := int64(unended), make(map[int64]bool)
	for _, other := range reports {
		switch {
		case other.Kind == keeping && other.Client == r.Client && other.Path == r.Path && other.Wall >= r.Wall:
			again = min(again, other.Wall)
		case other.Kind == expired && other.Wall <= r.Wall+lossReport.Milliseconds():
			lost[other.Session] = true
		}
	}
	for _, v := range o.versions[r.Path] {
		if o.isOf(v.owner, r.Client) && !lost[v.owner] && v.wall < again && r.Wall < v.over() {
			return fmt.Sprintf("gone: %s closed %s, and its znode %#x (session %#x) still exists", r.Client, r.Path, v.czxid, v.owner)
		}
	}
	return ""
}

// checkMembers is the validator of "every member stays", once all is well: at some moment the group has a
// member of each worker's present session.
func (r *run) checkMembers(t *testing.T) {
	t.Helper()
	c := connect(t, r.ensemble.Addr())
	var missing []string
	if !await(t.Context(), repairLimit, func() bool {
		missing = nil
		for _, s := range r.slots {
			p := s.current()
			id, _, _ := strings.Cut(p.name, ".")
			stat, ok, err := c.Exists(t.Context(), path.Join(groupRoot, id))
			if err != nil || !ok || r.board.sessions()[stat.EphemeralOwner] != p.name {
				missing = append(missing, p.name)
			}
		}
		return len(missing) == 0
	}) {
		r.fail(fmt.Errorf("every member stays: %v are not members of the group %v after the last fault", missing, repairLimit))
	}
}

func TestBadKept(t *testing.T) {
	t.Parallel()
	const at = keptRoot + "/a"
	create := func(zxid, session int64) txn {
		return txn{zxid: zxid, wall: zxid, session: session, kind: txnCreate, path: at, data: 1, ephemeral: true}
	}
	change := func(zxid, session int64, kind int32) txn {
		return txn{zxid: zxid, wall: zxid, session: session, kind: kind, path: at, data: 2}
	}
	reportOf := func(kind history.Kind, client string, wall int64, data uint32) report {
		return report{Record: history.Record{Kind: kind, Client: client}, Path: at, Wall: wall, Znode: shown{Path: at, Data: data}}
	}
	for name, c := range map[string]struct {
		log     []txn
		reports []report
		faults  int
	}{
		"kept, written and closed": {
			[]txn{create(1, 1), change(2, 1, txnSet), change(3, 1, txnDelete)},
			[]report{reportOf(keeping, "x", 1, 0), reportOf(wrote, "x", 1, 1), reportOf(wrote, "x", 2, 2), reportOf(closed, "x", 3, 0)},
			0,
		},
		"a former session's znode replaced": {[]txn{create(1, 1), change(2, 2, txnDelete), create(3, 2)}, nil, 0},
		"another's znode deleted":           {[]txn{create(1, 1), change(2, 3, txnDelete)}, nil, 1},
		"another's znode written":           {[]txn{create(1, 1), change(2, 3, txnSet)}, nil, 1},
		"data that are not there":           {[]txn{create(1, 1)}, []report{reportOf(wrote, "x", 1, 2)}, 1},
		"data that came too late":           {[]txn{create(2, 1)}, []report{reportOf(wrote, "x", 1, 1)}, 1},
		"data of another client":            {[]txn{create(1, 3)}, []report{reportOf(wrote, "x", 1, 1)}, 1},
		"closed, and it is there":           {[]txn{create(1, 1)}, []report{reportOf(closed, "x", 2, 0)}, 1},
		"closed, and it comes later":        {[]txn{create(3, 1)}, []report{reportOf(closed, "x", 2, 0)}, 1},
		"closed, and kept again":            {[]txn{create(4, 1)}, []report{reportOf(closed, "x", 2, 0), reportOf(keeping, "x", 3, 0)}, 0},
		"closed after the session was lost": {
			[]txn{create(1, 1)},
			[]report{{Record: history.Record{Kind: expired, Client: "x", Session: 1}, Wall: 2}, reportOf(closed, "x", 2, 0)},
			0,
		},
		"closed, and another has it": {[]txn{create(3, 3)}, []report{reportOf(closed, "x", 2, 0)}, 0},
	} {
		o := &oracle{grow(c.log), map[int64]string{1: "x", 2: "x", 3: "y"}}
		if faults := o.badKept(c.reports); len(faults) != c.faults {
			t.Errorf("%s: %q, want %d faults", name, faults, c.faults)
		}
	}
}
