package lock

import (
	"context"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/recipes/internal/hold"
	"github.com/docent-go/docent/recipes/internal/queue"
	"github.com/docent-go/docent/recipes/lease"
)

// participants returns the contenders of q in order. One that leaves while the
// list is made is not in it.
func participants(ctx context.Context, q *queue.Queue) ([]Participant, error) {
	nodes, err := q.List(ctx)
	if err != nil {
		return nil, err
	}
	found := make([]Participant, 0, len(nodes))
	standing := make([]queue.Node, 0, len(nodes))
	for _, node := range nodes {
		path := framework.JoinPath(q.Dir, node.Name)
		data, st, err := q.Client.Get(ctx, path)
		if ctxerr.Is(err, framework.ErrNoNode) {
			continue
		}
		if err != nil {
			return nil, err
		}
		p := Participant{Path: path, Kind: node.Kind, Session: st.EphemeralOwner, Sequence: int64(node.Sequence), Data: data}
		if m, ok := lease.DecodeMetadata(data); ok {
			p.Metadata, p.Data = m, m.Data
		}
		if hold.RequestsRelease(data, st) {
			p.Revoked, p.Data = true, nil
		}
		found, standing = append(found, p), append(standing, node)
	}
	for i := range found {
		found[i].Holder = q.Ahead(standing, i, i) < 0
	}
	return found, nil
}
