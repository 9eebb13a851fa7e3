package queue

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/ctxerr"
)

// A directory's counter ends: after the greatest signed 32-bit number ZooKeeper
// 3.8 gives every further node that same number, instead of going on with
// negative ones as its documentation has it. A directory that is never empty, so
// never removed, gets there in 25 days at 1,000 contenders a second. Nodes of that
// number stand in the order of their creation, which only their Stats tell.
const lastSequence = math.MaxInt32

// errNoNumber is returned where a node would have to stand beside another of
// [lastSequence]: it could not be told from those that came later.
var errNoNumber = fmt.Errorf("queue: the directory's counter has come to its end (%d); it starts anew when the directory has been empty", lastSequence)

// settle puts the nodes of the last number, which end the sorted nodes, in the order of
// their creation, if the attempt's is one of several. It returns those that still stand.
func (a *Attempt) settle(ctx context.Context, nodes []Node, own int) ([]Node, error) {
	if nodes[own].Sequence != lastSequence {
		return nodes, nil
	}
	if a.beside != nil {
		return nil, errNoNumber
	}
	first := slices.IndexFunc(nodes, func(n Node) bool { return n.Sequence == lastSequence })
	if first == len(nodes)-1 {
		return nodes, nil
	}
	created := make(map[string]int64, len(nodes)-first)
	for _, node := range nodes[first:] {
		st, ok, err := a.client.Exists(ctx, framework.JoinPath(a.queue.Dir, node.Name))
		if err != nil && !ctxerr.Is(err, framework.ErrNoNode) {
			return nil, err
		}
		if ok {
			created[node.Name] = st.Czxid
		}
	}
	nodes = slices.DeleteFunc(nodes, func(n Node) bool {
		_, stands := created[n.Name]
		return n.Sequence == lastSequence && !stands
	})
	first = min(first, len(nodes))
	slices.SortFunc(nodes[first:], func(a, b Node) int { return cmp.Compare(created[a.Name], created[b.Name]) })
	return nodes, nil
}
