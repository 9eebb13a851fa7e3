package main

import "fmt"

// A curve is a scenario whose size grows. The scenario's workers are the size.
type curve struct {
	scenario

	unit   string // what there are more of
	most   int    // the largest size
	opsOf  func(size int) int
	inKind bool // the size is a part of the kind, and there is one worker
}

// steps are the sizes within a factor of ten.
var steps = [...]int{1, 3} //nolint:gochecknoglobals // a constant, if Go had constant arrays

// sizes returns the sizes up to limit.
func (c curve) sizes(limit int) []int {
	var all []int
	least := 1
	if c.inKind {
		least = 2
	}
	if c.tree {
		least = treeDirectory
	}
	limit = min(limit, c.most)
	for decade := 1; decade <= limit; decade *= 10 {
		for _, step := range steps {
			if n := decade * step; n >= least && n <= limit {
				all = append(all, n)
			}
		}
	}
	if len(all) == 0 || all[len(all)-1] != limit {
		all = append(all, limit)
	}
	return all
}

// at returns the scenario of a size.
func (c curve) at(size int) scenario {
	s := c.scenario
	s.name = fmt.Sprintf("%s-%d", c.name, size)
	s.workers, s.ops = size, c.opsOf(size)
	if c.inKind {
		s.workers, s.kinds = 1, make(map[string]string)
		for name, kind := range c.kinds {
			s.kinds[name] = fmt.Sprintf("%s-%d", kind, size)
		}
	}
	return s
}

// atLeast returns a number of operations for a size: as many as there are units, and at least n.
func atLeast(n int) func(int) int { return func(size int) int { return max(n, size) } }

// curves returns the table of all curves.
func curves() []curve {
	mutex := map[string]string{docent: "mutex", gozk: "mutex", curator: "mutex"}
	floor := map[string]string{wire: "listed", docent: "mutex", gozk: "mutex", curator: "mutex"}
	caches := map[string]string{wire: "cache", docent: "cache", curator: "cache"}
	return []curve{
		{scenario: scenario{name: "waiters", title: "waiters of one session on one path, drained", load: "queue", kinds: mutex}, unit: "waiter", most: 10_000, opsOf: atLeast(1)},
		{scenario: scenario{name: "held", title: "locks held by one client", load: "hold", kinds: mutex}, unit: "held lock", most: 100_000, opsOf: atLeast(1)},
		{scenario: scenario{name: "paths", title: "free locks of many paths, in turn", load: "cycle", kinds: floor}, unit: "path", most: 100_000, opsOf: atLeast(1000)},
		{scenario: scenario{name: "sessions", title: "sessions with one waiter each, drained", load: "sessions", kinds: map[string]string{docent: "mutex", gozk: "mutex"}}, unit: "session", most: 2000, opsOf: atLeast(1)},
		{scenario: scenario{name: "readers", title: "readers of one session on one path", load: "shared", byRate: true, kinds: map[string]string{wire: "listed", docent: "read", curator: "read"}}, unit: "reader", most: 1000, opsOf: atLeast(1000)},
		{scenario: scenario{name: "multi", title: "members of a multi-lock", load: "sequence", kinds: map[string]string{wire: "multi", docent: "multi", gozk: "multi", curator: "multi"}}, unit: "member", most: 500, opsOf: func(size int) int { return max(5, 500/size) }, inKind: true},
		{scenario: scenario{name: "cache", title: "a cache filled", load: "fill", tree: true, kinds: caches}, unit: "znode", most: 100_000, opsOf: func(int) int { return 1 }},
	}
}
