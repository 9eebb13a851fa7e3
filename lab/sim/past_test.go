package sim_test

import (
	"maps"
	"slices"
	"strings"

	"github.com/docent-go/docent/testing/zkserver"
)

// A past is what a part of the tree was after each transaction, as the leader knows. The environment's mutex
// guards it.
type past struct {
	root   string
	states []treeState
}

// A treeState is the part of the tree after one transaction.
type treeState map[string]version

// A version is a znode between two writes.
type version struct {
	czxid, mzxid int64
	data         string
}

// recordPast records the past of a part of the tree from now on, while nothing exists there.
func (env *environment) recordPast(root string) *past {
	p := &past{root: root, states: []treeState{{}}}
	env.tell(p.observe)
	return p
}

func (p *past) observe(x zkserver.Transaction) {
	if !slices.ContainsFunc(x.Changes, p.has) {
		return
	}
	next := maps.Clone(p.last())
	for _, c := range x.Changes {
		if !p.has(c) {
			continue
		}
		switch old := next[c.Path]; c.Kind {
		case zkserver.Created:
			next[c.Path] = version{x.Zxid, x.Zxid, string(c.Data)}
		case zkserver.DataSet:
			next[c.Path] = version{old.czxid, x.Zxid, string(c.Data)}
		case zkserver.Deleted:
			delete(next, c.Path)
		}
	}
	p.states = append(p.states, next)
}

func (p *past) has(c zkserver.Change) bool {
	return c.Path == p.root || strings.HasPrefix(c.Path, p.root+"/")
}

func (p *past) last() treeState { return p.states[len(p.states)-1] }

// present returns the number of the last state. It takes the environment's mutex.
func (p *past) present(env *environment) int {
	env.mu.Lock()
	defer env.mu.Unlock()
	return len(p.states) - 1
}

// within returns the state without what is more than depth below the root; all if depth is negative.
func (s treeState) within(root string, depth int) treeState {
	if depth < 0 {
		return s
	}
	part := treeState{}
	for path, v := range s {
		if strings.Count(path[len(root):], "/") <= depth {
			part[path] = v
		}
	}
	return part
}
