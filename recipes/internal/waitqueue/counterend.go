package waitqueue

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/errtype"
)

// lastSequence is where a directory's counter ends. The creations that are outstanding together at
// that moment get this number, then the least negative one, and so on upwards; all later ones get
// this number again. A directory that is never empty, so never removed, gets there in 25 days at
// 1,000 contenders a second.
const lastSequence = math.MaxInt32

// ErrCounterEnd is returned to a writer that asks for the read side, too, and whose znode has a
// number from the end of the directory's counter: other znodes may have the same.
var ErrCounterEnd = errtype.New("the counter of the lock's directory has come to its end; "+
	"it begins again once the directory has been empty and removed", "counter_end")

// Uncounted reports whether the number is one from the end of the directory's counter: it comes
// after all others, and says nothing of the order among its like.
func (n Node) Uncounted() bool { return n.Sequence == lastSequence || n.Sequence < 0 }

// statsAtOnce is how many Stats are asked for at one time.
const statsAtOnce = 64

// settle puts the uncounted nodes, which end the sorted nodes, in the order of their creation, which
// their Stats tell. It leaves those out that have gone meanwhile.
func (q *Queue) settle(ctx context.Context, c *framework.Client, nodes []Node) ([]Node, error) {
	first := slices.IndexFunc(nodes, Node.Uncounted)
	if first < 0 || first == len(nodes)-1 {
		return nodes, nil
	}
	created, err := q.created(ctx, c, nodes[first:])
	if err != nil {
		return nil, err
	}
	nodes = slices.DeleteFunc(nodes, func(n Node) bool { return n.Uncounted() && created[n.Name] == 0 })
	slices.SortFunc(nodes[min(first, len(nodes)):], func(a, b Node) int {
		return cmp.Compare(created[a.Name], created[b.Name])
	})
	return nodes, nil
}

// created returns the czxids of the nodes that exist, by their names.
func (q *Queue) created(
	ctx context.Context, c *framework.Client, nodes []Node,
) (map[string]int64, error) {
	czxids, errs := make([]int64, len(nodes)), make([]error, len(nodes))
	slots := make(chan struct{}, statsAtOnce)
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
		if errs[i] != nil && !ctxerr.Is(errs[i], framework.ErrNoNode) {
			return nil, errs[i]
		}
		if czxids[i] != 0 {
			created[node.Name] = czxids[i]
		}
	}
	return created, nil
}
