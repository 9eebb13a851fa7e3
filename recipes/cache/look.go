package cache

import (
	"errors"
	"slices"

	"github.com/docent-go/docent/framework"
)

// A sight is what a look at one znode found.
type sight struct {
	*mark
	node    *Node    // nil if there is no znode, or it can't be read
	refusal error    // why it can't be read
	listed  bool     // names was asked for
	names   []string // of its children
}

// look reads the oldest marks and applies what it found. It returns an error if the client is closed.
func (l *loop) look() error {
	if l.lost || l.marks.empty() {
		return nil
	}
	c := l.cache
	if l.asks { // so that reads see all that has been committed by now
		if err := c.client.Ready(c.ctx); err != nil {
			return l.fail(err)
		}
		l.asks = false
		l.take(l.drain())
		l.fill = l.marks.last
		return nil
	}
	taken := l.marks.take(maxBatch)
	sights, err := l.read(taken)
	if err != nil {
		l.marks.putBack(taken)
		return l.fail(err)
	}
	valid := l.source.Valid() // before drain: if it is, what drain returns is all
	changes := l.drain()
	if !valid || slices.ContainsFunc(changes, isUnseen) {
		l.marks.putBack(taken)
		l.lost = true
		l.take(changes)
		return nil
	}
	l.apply(sights, changes)
	return nil
}

func isUnseen(change framework.Change) bool { return change.Kind == framework.EventUnseen }

// read reads what was taken and lists what has to be listed. It returns an error if the
// ensemble did not answer.
func (l *loop) read(taken []*mark) ([]*sight, error) {
	c := l.cache
	paths := make([]string, len(taken))
	for i, k := range taken {
		paths[i] = k.path
	}
	reads, errs := l.source.Read(c.ctx, paths)
	sights := make([]*sight, len(taken))
	var inner []*sight
	for i, k := range taken {
		s := &sight{mark: k}
		sights[i] = s
		switch err := errs[i]; {
		case err == nil:
			s.node = &Node{Path: k.path, Data: reads[i].Data, Stat: reads[i].Stat}
			if c.cfg.withoutData {
				s.node.Data = nil
			}
			if l.lists(s) {
				inner = append(inner, s)
			}
		case errors.Is(err, framework.ErrNoNode):
		case refuses(err):
			s.refusal = err
		default:
			return nil, err
		}
	}
	return sights, l.list(inner)
}

// lists reports whether the children of what was read have to be known.
func (l *loop) lists(s *sight) bool {
	c := l.cache
	if !c.deepens(s.path) || !l.source.Lists(&s.node.Stat) {
		return false
	}
	old := c.view.Load().tree.get(s.path)
	return s.scope > justData || old == nil || old.Stat.Czxid != s.node.Stat.Czxid
}

func (l *loop) list(inner []*sight) error {
	if len(inner) == 0 {
		return nil
	}
	paths := make([]string, len(inner))
	for i, s := range inner {
		paths[i] = s.path
	}
	names, errs := l.source.List(l.cache.ctx, paths)
	for i, s := range inner {
		switch err := errs[i]; {
		case err == nil:
			s.listed, s.names = true, names[i]
		case errors.Is(err, framework.ErrNoNode): // deleted since it was read
			s.node = nil
		case refuses(err):
			s.node, s.refusal = nil, err
		default:
			return err
		}
	}
	return nil
}

// refuses reports whether err will come again until the znode is another.
func refuses(err error) bool {
	return errors.Is(err, framework.ErrNoAuth) || errors.Is(err, framework.ErrTooLarge) || errors.Is(err, framework.ErrNotGzip)
}
