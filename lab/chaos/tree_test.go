package chaos_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/testing/zktest"
)

// A version is what a znode was from one change to the next.
type version struct {
	path         string
	czxid, mzxid int64
	until        int64 // the zxid of the next change, or unended
	data         uint32
	number       int64
	writer       int64 // the session that made it
	owner        int64 // the session, if it is ephemeral
	wall, ended  int64 // when both changes were proposed, in milliseconds

	deleted bool  // the next change is a deletion
	by      int64 // the session that made it; the owner's, if that ended
}

// unended is the end of a version that still exists.
const unended = math.MaxInt64

// A tree is all versions of all znodes of a run, in the transaction logs' order.
type tree struct {
	versions map[string][]version
	closed   map[int64]int64 // when the end of a session was proposed
	// What the logs contradict themselves in. Servers of 3.8.0 that all were killed have come back with a
	// tree that lacked the last transactions of their logs; a later transaction then shows it, and counts.
	contradictions []string
}

// grow makes the tree of committed transactions.
func grow(committed []txn) *tree {
	t := &tree{versions: make(map[string][]version), closed: make(map[int64]int64)}
	owned := make(map[int64]map[string]bool)
	for _, op := range committed {
		last := t.last(op.path)
		exists := last != nil && last.until == unended
		switch op.kind {
		case txnCreate, txnCreate2, txnCreateContainer, txnCreateTTL:
			if exists {
				t.contradict("create %s at %#x, which exists since %#x", op.path, op.zxid, last.czxid)
				delete(owned[last.owner], op.path)
				last.end(txn{zxid: op.zxid, wall: op.wall}, true)
			}
			v := version{path: op.path, czxid: op.zxid, mzxid: op.zxid, until: unended, wall: op.wall}
			v.data, v.number, v.writer = op.data, op.number, op.session
			if op.ephemeral {
				v.owner = op.session
				if owned[v.owner] == nil {
					owned[v.owner] = make(map[string]bool)
				}
				owned[v.owner][op.path] = true
			}
			t.versions[op.path] = append(t.versions[op.path], v)
		case txnSet, txnDelete, txnDeleteContainer:
			if !exists {
				t.contradict("change %s at %#x, which does not exist", op.path, op.zxid)
				continue
			}
			last.end(op, op.kind != txnSet)
			if op.kind != txnSet {
				delete(owned[last.owner], op.path)
				continue
			}
			v := version{path: op.path, czxid: last.czxid, mzxid: op.zxid, until: unended, wall: op.wall, owner: last.owner}
			v.data, v.number, v.writer = op.data, op.number, op.session
			t.versions[op.path] = append(t.versions[op.path], v)
		case txnCloseSession:
			t.closed[op.session] = op.wall
			for path := range owned[op.session] {
				t.last(path).end(op, true)
			}
			delete(owned, op.session)
		}
	}
	return t
}

// over returns when the znode was deleted, in milliseconds, if this is its last version.
func (v version) over() int64 {
	if v.until == unended {
		return math.MaxInt64
	}
	return v.ended
}

func (v *version) end(op txn, deleted bool) {
	v.until, v.ended, v.deleted, v.by = op.zxid, op.wall, deleted, op.session
}

func (t *tree) contradict(format string, args ...any) {
	t.contradictions = append(t.contradictions, "the logs "+fmt.Sprintf(format, args...))
}

func (t *tree) last(path string) *version {
	if all := t.versions[path]; len(all) > 0 {
		return &all[len(all)-1]
	}
	return nil
}

// at returns the version of a znode after a transaction, or nil.
func (t *tree) at(path string, zxid int64) *version {
	all := t.versions[path]
	i := sort.Search(len(all), func(i int) bool { return all[i].mzxid > zxid })
	if i == 0 || all[i-1].until <= zxid {
		return nil
	}
	return &all[i-1]
}

// of returns the version that a transaction made of a znode, or nil.
func (t *tree) of(path string, mzxid int64) *version {
	if v := t.at(path, mzxid); v != nil && v.mzxid == mzxid {
		return v
	}
	return nil
}

// deletion returns the last version of a znode that was created by a transaction, or nil if that has
// not been deleted.
func (t *tree) deletion(path string, czxid int64) *version {
	all := t.versions[path]
	i := slices.IndexFunc(all, func(v version) bool { return v.czxid == czxid && v.deleted })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// children returns the paths below a directory that have ever existed.
func (t *tree) children(dir string) (paths []string) {
	for path := range t.versions {
		if len(path) > len(dir) && path[:len(dir)] == dir && path[len(dir)] == '/' {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

// An oracle judges what workers report by what the servers have committed.
type oracle struct {
	*tree
	clients map[int64]string // that had the sessions
}

// isOf reports whether the session was the client's. Of a client that was killed as it got a session,
// that is not known.
func (o *oracle) isOf(session int64, client string) bool { return o.clients[session] == client }

// consult returns the oracle of all that has happened so far, after it has compared it with what the
// ensemble shows.
func (r *run) consult(t *testing.T) (*oracle, error) {
	t.Helper()
	seen, err := readTree(t.Context(), connect(t, r.ensemble.Addr()))
	if err != nil {
		return nil, err
	}
	voters, _ := r.members()
	committed, discarded, err := readCommitted(dataDirs(voters))
	if err != nil {
		return nil, err
	}
	made := grow(committed)
	for path, stat := range seen {
		if v := made.of(path, stat.Mzxid); v == nil || v.czxid != stat.Czxid {
			return nil, fmt.Errorf("the ensemble shows %s of %#x, and the logs have %+v", path, stat.Mzxid, v)
		}
	}
	r.mu.Lock()
	r.logged, r.discarded, r.contradictions = len(committed), discarded, made.contradictions
	r.mu.Unlock()
	return &oracle{made, r.board.sessions()}, nil
}

// orphans returns which of the ephemeral znodes, with their owners, a client has left behind, and which
// the servers keep although they have committed the end of the session: 3.8.0 does that when followers
// that were cut off are killed, and only the servers can delete such a znode.
func (t *tree) orphans(left map[string]int64) (orphans, kept []string) {
	for _, path := range slices.Sorted(maps.Keys(left)) {
		if _, closed := t.closed[left[path]]; closed {
			kept = append(kept, path)
		} else {
			orphans = append(orphans, path)
		}
	}
	return orphans, kept
}

func dataDirs(servers []*zktest.Server) (dirs []string) {
	for _, s := range servers {
		dirs = append(dirs, s.DataDir())
	}
	return dirs
}

// readTree returns what a client is shown of the tree of the caches, and of the counter.
func readTree(ctx context.Context, c *framework.Client) (map[string]framework.Stat, error) {
	seen := make(map[string]framework.Stat)
	for _, path := range append(treePaths(), counterPath) {
		stat, ok, err := c.Exists(ctx, path)
		if err != nil {
			return nil, err
		}
		if ok {
			seen[path] = stat
		}
	}
	return seen, nil
}

func TestContradictionsOfTheLogsAreFound(t *testing.T) {
	t.Parallel()
	for name, log := range map[string][]txn{
		"a znode is created twice":    {{zxid: 1, kind: txnCreate, path: "/a"}, {zxid: 2, kind: txnCreate, path: "/a"}},
		"a missing znode is written":  {{zxid: 1, kind: txnSet, path: "/a"}},
		"a deleted znode is deleted":  {{zxid: 1, kind: txnCreate, path: "/a"}, {zxid: 2, kind: txnDelete, path: "/a"}, {zxid: 3, kind: txnDelete, path: "/a"}},
		"an ended session's is there": {{zxid: 1, session: 1, kind: txnCreate, path: "/a", ephemeral: true}, {zxid: 2, session: 1, kind: txnCloseSession}, {zxid: 3, kind: txnSet, path: "/a"}},
	} {
		if made := grow(log); len(made.contradictions) != 1 {
			t.Errorf("%s: %q, want one contradiction", name, made.contradictions)
		}
	}
}
