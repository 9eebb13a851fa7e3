package contender

import (
	"context"
	"errors"
	"sync"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/queuenode"
	"github.com/docent-go/docent/recipes/internal/waitqueue"
	"github.com/docent-go/docent/recipes/lease"
)

// Participants returns the contenders of q in order, without those that leave meanwhile.
func Participants(ctx context.Context, q *waitqueue.Queue) ([]lease.Participant, error) {
	nodes, err := q.List(ctx)
	if err != nil {
		return nil, err
	}
	paths := make([]string, len(nodes))
	for i, node := range nodes {
		paths[i] = framework.JoinPath(q.Dir, node.Name)
	}
	reads, errs := q.Client.GetEach(ctx, paths...)
	found := make([]lease.Participant, 0, len(nodes))
	existing := make([]queuenode.Node, 0, len(nodes))
	for i, node := range nodes {
		switch {
		case errors.Is(errs[i], framework.ErrNoNode):
			continue
		case errs[i] != nil:
			return nil, errs[i]
		}
		found = append(found, OfNode(paths[i], node, reads[i].Data, reads[i].Stat))
		existing = append(existing, node)
	}
	for i := range found {
		found[i].Holder = q.Predecessor(existing, i, i) < 0
	}
	return found, nil
}

// First returns the first contender of the queue, as far as the client's server knows; false if there
// is none.
func First(ctx context.Context, q *waitqueue.Queue) (lease.Participant, bool, error) {
	return firstOf(ctx, q, q.Client.Get)
}

// queuesAtOnce is how many queues FirstOfEach reads at a time.
const queuesAtOnce = 64

// FirstOfEach returns the first contender of each queue, and joins the errors. A queue without one has
// the zero Participant.
func FirstOfEach(ctx context.Context, queues []*waitqueue.Queue) ([]lease.Participant, error) {
	firsts := make([]lease.Participant, len(queues))
	faults := make([]error, len(queues))
	var reads sync.WaitGroup
	room := make(chan struct{}, queuesAtOnce)
	for i, q := range queues {
		room <- struct{}{}
		reads.Go(func() {
			if first, ok, err := First(ctx, q); ok {
				firsts[i] = first
			} else {
				faults[i] = err
			}
			<-room
		})
	}
	reads.Wait()
	return firsts, errors.Join(faults...)
}

// firstOf lists, and returns the first contender whose znode read finds.
func firstOf(
	ctx context.Context, q *waitqueue.Queue,
	read func(ctx context.Context, path string) ([]byte, framework.Stat, error),
) (lease.Participant, bool, error) {
	nodes, err := q.List(ctx)
	for _, node := range nodes {
		path := framework.JoinPath(q.Dir, node.Name)
		data, st, err := read(ctx, path)
		if errors.Is(err, framework.ErrNoNode) {
			continue
		}
		p := OfNode(path, node, data, st)
		p.Holder = true
		return p, err == nil, err
	}
	return lease.Participant{}, false, err
}

// OfNode returns the contender of a queue whose znode is node, at path.
func OfNode(path string, node queuenode.Node, data []byte, st framework.Stat) lease.Participant {
	p := At(path, data, st)
	p.Kind, p.Sequence = node.Kind, int64(node.Sequence)
	return p
}

// At returns the contender whose znode is at path.
func At(path string, data []byte, st framework.Stat) lease.Participant {
	p := lease.Participant{Path: path, Session: st.EphemeralOwner, Data: data}
	if m, ok := lease.DecodeMetadata(data); ok {
		p.Metadata, p.Data = m, m.Data
	}
	if queuenode.RequestsRelease(data, st.Version) {
		p.Revoked, p.Data = true, nil
	}
	return p
}
