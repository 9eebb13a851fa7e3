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

	// Data reports by the Stat whether the data are to be read. If it is nil, they are.
	Data func(stat *framework.Stat) bool
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
	l := look{Source: s, wants: wants, sights: make([]Sight, len(wants))}
	var toList, toRead []int
	lister, can := s.(statLister)
	for i, w := range wants {
		if can && w.Data != nil {
			toList = append(toList, i)
		} else {
			toRead = append(toRead, i)
		}
	}
	if len(toList) > 0 {
		withData, err := l.listWithStat(ctx, lister, toList)
		if err != nil {
			return nil, err
		}
		toRead = append(toRead, withData...)
	}
	inner, err := l.read(ctx, toRead)
	if err != nil {
		return nil, err
	}
	return l.sights, l.list(ctx, inner)
}

// A look fills sights, one for each want.
type look struct {
	Source
	wants  []Want
	sights []Sight
}

func (l *look) paths(at []int) []string {
	paths := make([]string, len(at))
	for i, k := range at {
		paths[i] = l.wants[k].Path
	}
	return paths
}

// refuse notes why the znode could not be read. It returns an error that concerns all znodes.
func (l *look) refuse(at int, err error) error {
	switch {
	case errors.Is(err, framework.ErrNoNode):
		l.sights[at] = Sight{}
	case unreadable(err):
		l.sights[at] = Sight{Refusal: err}
	default:
		return err
	}
	return nil
}

// listWithStat lists the znodes, and returns those whose data are to be read.
func (l *look) listWithStat(ctx context.Context, s statLister, at []int) ([]int, error) {
	var withData []int
	names, stats, errs := s.ListWithStat(ctx, l.paths(at))
	for i, k := range at {
		if errs[i] != nil {
			if err := l.refuse(k, errs[i]); err != nil {
				return nil, err
			}
			continue
		}
		l.sights[k].Read = &framework.Read{Stat: stats[i]}
		if l.wants[k].List {
			l.sights[k].Listed, l.sights[k].Names = true, names[i]
		}
		if l.wants[k].Data(&stats[i]) {
			withData = append(withData, k)
		}
	}
	return withData, nil
}

// read reads the znodes, and returns those that have to be listed.
func (l *look) read(ctx context.Context, at []int) ([]int, error) {
	if len(at) == 0 {
		return nil, nil
	}
	var inner []int
	reads, errs := l.Read(ctx, l.paths(at))
	for i, k := range at {
		if errs[i] != nil {
			if err := l.refuse(k, errs[i]); err != nil {
				return nil, err
			}
			continue
		}
		w, sight, stat := l.wants[k], &l.sights[k], &reads[i].Stat
		if sight.Read != nil && sight.Read.Stat.Czxid != stat.Czxid { // created again since it was listed
			*sight = Sight{}
		}
		if sight.Read = &reads[i]; w.List && !sight.Listed && stat.Czxid != w.Known && l.Lists(stat) {
			inner = append(inner, k)
		}
	}
	return inner, nil
}

// list lists the znodes of at.
func (l *look) list(ctx context.Context, at []int) error {
	if len(at) == 0 {
		return nil
	}
	names, errs := l.List(ctx, l.paths(at))
	for i, k := range at {
		if errs[i] != nil {
			if err := l.refuse(k, errs[i]); err != nil { // it may have been deleted since it was read
				return err
			}
			continue
		}
		l.sights[k].Listed, l.sights[k].Names = true, names[i]
	}
	return nil
}

// unwatched reports whether a read that failed with err leaves the znode without a watch of its data.
func unwatched(err error) bool { return errors.Is(err, framework.ErrNoNode) || unreadable(err) }

// unreadable reports whether err will come again until the znode is another, or its ACL.
func unreadable(err error) bool {
	return errors.Is(err, framework.ErrNoAuth) || errors.Is(err, framework.ErrTooLarge) || errors.Is(err, framework.ErrNotGzip)
}
