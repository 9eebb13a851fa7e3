package chaos_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/docent-go/docent/lab/history"
	"github.com/docent-go/docent/recipes/cache"
)

// What the oracle compared of caches with the transaction logs, as counts.
const (
	judgedEvents  = "events of caches compared with the transaction logs"
	judgedSettled = "settled snapshots compared with the transaction logs"
	judgedSynced  = "snapshots after Sync compared with the transaction logs"
)

// checkCaches is the validator of caches.
func (r *run) checkCaches(o *oracle) {
	faults, counts := judgeCaches(o.tree, cachedRoot, r.board.reported(cacheEvent, cacheSnapshot))
	for _, fault := range faults {
		r.fail(errors.New(fault))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.judged, r.missed = counts, len(faults)
}

// judgeCaches returns what the caches showed that the tree never was.
func judgeCaches(t *tree, root string, reports []report) (faults []string, counts map[string]int) {
	counts = make(map[string]int)
	lives := make(map[string][]report)
	for _, r := range reports {
		lives[r.Lease] = append(lives[r.Lease], r)
		switch {
		case r.Kind == cacheEvent:
			counts[judgedEvents]++
		case r.Since > 0:
			counts[judgedSynced]++
		}
		if r.Settled {
			counts[judgedSettled]++
		}
	}
	paths := append([]string{root}, t.children(root)...)
	for name, life := range lives {
		latest := make(map[string]int64) // the mzxid that each znode was last shown with, by kind of report: each has one goroutine
		for _, r := range life {
			if fault := t.judgeCache(paths, r, latest); fault != "" {
				faults = append(faults, name+": "+fault)
				break // what follows is of the same kind
			}
		}
	}
	slices.Sort(faults)
	return faults, counts
}

// judgeCache returns what is wrong with one event or one snapshot, or "".
func (t *tree) judgeCache(paths []string, r report, latest map[string]int64) string {
	all := r.Tree
	if r.Kind == cacheEvent {
		if r.Znode.Path == "" {
			return "" // ready, or stale
		}
		all = []shown{r.Znode}
	}
	for _, s := range all {
		if fault := t.judgeShown(s, latest, fmt.Sprint(r.Kind, r.Since > 0)); fault != "" {
			return fault
		}
	}
	switch {
	case r.Kind == cacheEvent && r.Note == cache.Removed.String():
		end := t.deletion(r.Znode.Path, r.Znode.Czxid)
		if end == nil || end.ended > r.Wall {
			return fmt.Sprintf("truth: %s of %#x is Removed before anybody deleted it", r.Znode.Path, r.Znode.Czxid)
		}
	case r.Kind == cacheSnapshot && r.Settled:
		if !t.wasAt(paths, r) {
			return fmt.Sprintf("one moment: the tree was never, or not since %#x, as a settled snapshot shows it: %+v", r.Since, all)
		}
	case r.Kind == cacheSnapshot && r.Since > 0:
		return t.behind(paths, r)
	}
	return ""
}

// judgeShown checks that the znode was so, and that no later version of it was shown before.
func (t *tree) judgeShown(s shown, latest map[string]int64, kind string) string {
	v := t.of(s.Path, s.Mzxid)
	if v == nil || v.czxid != s.Czxid || v.data != s.Data {
		return fmt.Sprintf("truth: %+v is in no transaction log", s)
	}
	if s.Mzxid < latest[kind+s.Path] {
		return fmt.Sprintf("truth: %s of transaction %#x is shown after that of %#x", s.Path, s.Mzxid, latest[kind+s.Path])
	}
	latest[kind+s.Path] = s.Mzxid
	return ""
}

// wasAt reports whether there was a moment, not before Since, at which the tree was what is shown.
func (t *tree) wasAt(paths []string, r report) bool {
	from, to := r.Since, int64(unended)
	missing := slices.Clone(paths)
	for _, s := range r.Tree {
		v := t.of(s.Path, s.Mzxid)
		from, to = max(from, v.mzxid), min(to, v.until)
		missing = slices.DeleteFunc(missing, func(path string) bool { return path == s.Path })
	}
	moments := []int64{from}
	for _, path := range missing {
		for _, v := range t.versions[path] {
			if v.deleted && from < v.until && v.until < to && v.ended <= r.Wall {
				moments = append(moments, v.until)
			}
		}
	}
	return from < to && slices.ContainsFunc(moments, func(zxid int64) bool {
		return !slices.ContainsFunc(missing, func(path string) bool { return t.at(path, zxid) != nil })
	})
}

// behind returns what a snapshot shows or lacks that was otherwise from Since until it was taken, or "".
func (t *tree) behind(paths []string, r report) string {
	for _, path := range paths {
		i := slices.IndexFunc(r.Tree, func(s shown) bool { return s.Path == path })
		switch {
		case i >= 0 && t.of(path, r.Tree[i].Mzxid).until <= r.Since:
			return fmt.Sprintf("complete: %s of %#x is shown after Sync, and was changed before %#x", path, r.Tree[i].Mzxid, r.Since)
		case i < 0 && t.stayed(path, r.Since, r.Wall):
			return fmt.Sprintf("complete: %s is not shown after Sync, and exists since %#x", path, r.Since)
		}
	}
	return ""
}

// stayed reports whether a znode existed at a transaction and until a moment.
func (t *tree) stayed(path string, since, wall int64) bool {
	v := t.at(path, since)
	if v == nil {
		return false
	}
	end := t.deletion(path, v.czxid)
	return end == nil || end.ended > wall
}

func TestJudgeCaches(t *testing.T) {
	t.Parallel()
	made := grow([]txn{
		{zxid: 1, wall: 10, kind: txnCreate, path: "/r"},
		{zxid: 2, wall: 20, kind: txnCreate, path: "/r/a", data: 1},
		{zxid: 3, wall: 30, kind: txnCreate, path: "/r/b", data: 1},
		{zxid: 4, wall: 40, kind: txnSet, path: "/r/a", data: 2},
		{zxid: 4, wall: 40, kind: txnSet, path: "/r/b", data: 2},
		{zxid: 5, wall: 50, kind: txnDelete, path: "/r/a"},
		{zxid: 6, wall: 60, kind: txnCreate, path: "/r/a", data: 3},
	})
	r, a2, b3 := shown{"/r", 1, 1, 0}, shown{"/r/a", 2, 2, 1}, shown{"/r/b", 3, 3, 1}
	a4, b4, a6 := shown{"/r/a", 2, 4, 2}, shown{"/r/b", 3, 4, 2}, shown{"/r/a", 6, 6, 3}
	event := func(kind cache.EventKind, z shown, wall int64) report {
		return report{Record: history.Record{Kind: cacheEvent, Note: kind.String()}, Znode: z, Wall: wall}
	}
	snapshot := func(since int64, settled bool, all ...shown) report {
		return report{Record: history.Record{Kind: cacheSnapshot}, Tree: all, Settled: settled, Since: since, Wall: 55}
	}
	for name, c := range map[string]struct {
		reports []report
		faults  int
	}{
		"events as they were":                     {[]report{event(cache.Added, a2, 20), event(cache.Changed, a4, 40), event(cache.Removed, a4, 50), event(cache.Added, a6, 60)}, 0},
		"data that nobody wrote":                  {[]report{event(cache.Added, shown{"/r/a", 2, 2, 9}, 20)}, 1},
		"a version that never was":                {[]report{event(cache.Added, shown{"/r/a", 2, 3, 1}, 20)}, 1},
		"an earlier version after a later one":    {[]report{event(cache.Added, a4, 40), event(cache.Changed, a2, 41)}, 1},
		"a living znode is removed":               {[]report{event(cache.Added, b4, 40), event(cache.Removed, b4, 90)}, 1},
		"a znode is removed before its deletion":  {[]report{event(cache.Added, a4, 40), event(cache.Removed, a4, 49)}, 1},
		"settled snapshots":                       {[]report{snapshot(0, true, r, a2), snapshot(4, true, r, a4, b4), snapshot(4, true, r, b4)}, 0},
		"half of a transaction":                   {[]report{snapshot(0, true, r, a4, b3)}, 1},
		"half of a transaction, not settled":      {[]report{snapshot(0, false, r, a4, b3)}, 0},
		"a settled snapshot lacks a znode":        {[]report{snapshot(0, true, r, a6)}, 1},
		"a settled snapshot from before the Sync": {[]report{snapshot(6, true, r, b4)}, 1},
		"a znode from before the Sync":            {[]report{snapshot(5, false, r, a4, b4)}, 1},
		"a znode is missing after Sync":           {[]report{snapshot(6, false, r, b4)}, 1},
		"a znode was deleted after the snapshot":  {[]report{snapshot(4, false, r, b4)}, 0},
		"a znode that came after the Sync began":  {[]report{snapshot(5, false, r, a6, b4)}, 0},
	} {
		if faults, _ := judgeCaches(made, "/r", c.reports); len(faults) != c.faults {
			t.Errorf("%s: %q, want %d faults", name, faults, c.faults)
		}
	}
}
