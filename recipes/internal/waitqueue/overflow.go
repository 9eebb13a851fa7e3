package waitqueue

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/errtype"
	"github.com/docent-go/docent/internal/queuenode"
)

// ErrCounterEnd is returned to a writer that also asks for the read side, if its number is from the
// end of the directory's counter. Other znodes may have the same number.
var ErrCounterEnd = errtype.New("the counter of the lock's directory has come to its end; "+
	"it begins again once the directory has been empty and removed", "counter_end")

// maxStats is the maximum number of Stats that are requested at one time.
const maxStats = 64

// orderOverflowed puts the overflowed nodes, which end the sorted nodes, in the order of their
// creation, which it reads from their Stats. It leaves out nodes that are gone by then.
func (q *Queue) orderOverflowed(
	ctx context.Context, c *framework.Client, nodes []queuenode.Node,
) ([]queuenode.Node, error) {
	first := slices.IndexFunc(nodes, queuenode.Node.Overflowed)
	if first < 0 || first == len(nodes)-1 {
		return nodes, nil
	}
	created, err := q.created(ctx, c, nodes[first:])
	if err != nil {
		return nil, err
	}
	nodes = slices.DeleteFunc(nodes, func(n queuenode.Node) bool { return n.Overflowed() && created[n.Name] == 0 })
	slices.SortFunc(nodes[min(first, len(nodes)):], func(a, b queuenode.Node) int {
		return cmp.Compare(created[a.Name], created[b.Name])
	})
	return nodes, nil
}

// created returns the czxids of the nodes that exist, by their names.
func (q *Queue) created(
	ctx context.Context, c *framework.Client, nodes []queuenode.Node,
) (map[string]int64, error) {
	czxids, errs := make([]int64, len(nodes)), make([]error, len(nodes))
	slots := make(chan struct{}, maxStats)
	var wg sync.WaitGroup
	for i, node := range nodes {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			st, _, err := c.Exists(ctx, framework.JoinPath(q.Dir, node.Name))
			czxids[i], errs[i] = st.Czxid, err
		})
	}
	wg.Wait()
	created := make(map[string]int64, len(nodes))
	for i, node := range nodes {
		if errs[i] != nil && !errors.Is(errs[i], framework.ErrNoNode) {
			return nil, errs[i]
		}
		if czxids[i] != 0 {
			created[node.Name] = czxids[i]
		}
	}
	return created, nil
}
