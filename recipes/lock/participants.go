package lock

import (
	"context"
	"errors"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/hold"
	"github.com/docent-go/docent/recipes/internal/waitqueue"
	"github.com/docent-go/docent/recipes/lease"
)

// participants returns the contenders of q in order. One that leaves while the
// list is made is not in it.
func participants(ctx context.Context, q *waitqueue.Queue) ([]Participant, error) {
	nodes, err := q.List(ctx)
	if err != nil {
		return nil, err
	}
	paths := make([]string, len(nodes))
	for i, node := range nodes {
		paths[i] = framework.JoinPath(q.Dir, node.Name)
	}
	reads, errs := q.Client.GetEach(ctx, paths...)
	found := make([]Participant, 0, len(nodes))
	existing := make([]waitqueue.Node, 0, len(nodes))
	for i, node := range nodes {
		switch {
		case errors.Is(errs[i], framework.ErrNoNode):
			continue
		case errs[i] != nil:
			return nil, errs[i]
		}
		p := participant(paths[i], reads[i].Data, reads[i].Stat)
		p.Kind, p.Sequence = node.Kind, int64(node.Sequence)
		found, existing = append(found, p), append(existing, node)
	}
	for i := range found {
		found[i].Holder = q.Predecessor(existing, i, i) < 0
	}
	return found, nil
}

// participant returns the contender whose znode lies at path.
func participant(path string, data []byte, st framework.Stat) Participant {
	p := Participant{Path: path, Session: st.EphemeralOwner, Data: data}
	if m, ok := lease.DecodeMetadata(data); ok {
		p.Metadata, p.Data = m, m.Data
	}
	if hold.RequestsRelease(data, st) {
		p.Revoked, p.Data = true, nil
	}
	return p
}
