package treesource

import (
	"context"
	"errors"

	"github.com/docent-go/docent/framework"
)

// A Want says what to read of a znode.
type Want struct {
	Path  string
	List  bool  // its children, too, if the Source says that they have to be listed
	Known int64 // the Czxid of a znode whose children need no listing; Unknown for none
}

// Unknown is no znode's Czxid. That of "/" is 0.
const Unknown = -1

// A Sight is what was found of a znode.
type Sight struct {
	Read    *framework.Read // nil if there is no znode, or it can't be read
	Refusal error           // why it can't be read
	Listed  bool            // Names were asked for
	Names   []string        // of its children
}

// Look reads the znodes, and lists those that have to be listed. It returns an error if the ensemble
// did not answer.
func Look(ctx context.Context, s Source, wants []Want) ([]Sight, error) {
	paths := make([]string, len(wants))
	for i, w := range wants {
		paths[i] = w.Path
	}
	reads, errs := s.Read(ctx, paths)
	sights := make([]Sight, len(wants))
	var inner []int
	for i, w := range wants {
		switch err := errs[i]; {
		case err == nil:
			stat := &reads[i].Stat
			if sights[i].Read = &reads[i]; w.List && stat.Czxid != w.Known && s.Lists(stat) {
				inner = append(inner, i)
			}
		case errors.Is(err, framework.ErrNoNode):
		case unreadable(err):
			sights[i].Refusal = err
		default:
			return nil, err
		}
	}
	return sights, list(ctx, s, paths, sights, inner)
}

// list lists the znodes of inner.
func list(ctx context.Context, s Source, paths []string, sights []Sight, inner []int) error {
	if len(inner) == 0 {
		return nil
	}
	asked := make([]string, len(inner))
	for i, at := range inner {
		asked[i] = paths[at]
	}
	names, errs := s.List(ctx, asked)
	for i, at := range inner {
		switch err := errs[i]; {
		case err == nil:
			sights[at].Listed, sights[at].Names = true, names[i]
		case errors.Is(err, framework.ErrNoNode): // deleted since it was read
			sights[at] = Sight{}
		case unreadable(err):
			sights[at] = Sight{Refusal: err}
		default:
			return err
		}
	}
	return nil
}

// unwatched reports whether a read that failed with err leaves the znode without a watch of its data.
func unwatched(err error) bool { return errors.Is(err, framework.ErrNoNode) || unreadable(err) }

// unreadable reports whether err will come again until the znode is another, or its ACL.
func unreadable(err error) bool {
	return errors.Is(err, framework.ErrNoAuth) || errors.Is(err, framework.ErrTooLarge) || errors.Is(err, framework.ErrNotGzip)
}
