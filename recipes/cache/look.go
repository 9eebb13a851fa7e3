package cache

import (
	"slices"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/readlist"
	"github.com/docent-go/docent/recipes/internal/treesource"
)

// A sight is what a look at one znode found.
type sight struct {
	*readlist.Mark
	treesource.Sight
	node *Node // nil if there is no znode, or it can't be read
}

// look reads the oldest marks and applies what it found. It returns an error if the client is closed.
func (l *loop) look() error {
	if l.lost || l.marks.Empty() {
		return nil
	}
	c := l.cache
	if l.asks { // so that reads see all that has been committed by now
		if err := c.client.Ready(c.ctx); err != nil {
			return l.fail(err)
		}
		l.asks = false
		l.take(l.drain())
		l.fill = l.marks.Last()
		return nil
	}
	taken := l.marks.Take(maxBatch)
	sights, err := l.read(taken)
	if err != nil {
		l.marks.PutBack(taken)
		return l.fail(err)
	}
	valid := l.source.Valid() // before drain: if it is, what drain returns is all
	changes := l.drain()
	if !valid || slices.ContainsFunc(changes, isUnseen) {
		l.marks.PutBack(taken)
		l.lost = true
		l.take(changes)
		return nil
	}
	l.apply(sights, changes)
	return nil
}

func isUnseen(change framework.Change) bool { return change.Kind == framework.EventUnseen }

// read reads what was taken. It returns an error if the ensemble did not answer.
func (l *loop) read(taken []*readlist.Mark) ([]*sight, error) {
	c := l.cache
	have := c.view.Load().tree
	wants := make([]treesource.Want, len(taken))
	for i, k := range taken {
		wants[i] = treesource.Want{Path: k.Path, List: c.extent.Deepens(k.Path)}
		if old := have.Get(k.Path); old != nil && k.Scope == readlist.JustData {
			wants[i].Known = old.Stat.Czxid
		}
	}
	found, err := treesource.Look(c.ctx, l.source, wants)
	if err != nil {
		return nil, err
	}
	sights := make([]*sight, len(taken))
	for i, k := range taken {
		sights[i] = &sight{Mark: k, Sight: found[i]}
		if read := found[i].Read; read != nil {
			sights[i].node = &Node{Path: k.Path, Data: read.Data, Stat: read.Stat}
			if c.noData {
				sights[i].node.Data = nil
			}
		}
	}
	return sights, nil
}
