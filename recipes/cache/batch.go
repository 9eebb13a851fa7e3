package cache

import (
	"context"
	"errors"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/args"
)

// A want says what to read of a znode.
type want struct {
	path  string
	list  bool  // its children, too
	known int64 // the Czxid of a znode whose children need no listing; noCzxid for none

	// Data reports by the Stat whether the data are to be read. If it is nil, they are.
	data func(stat *framework.Stat) bool
}

// noCzxid is no znode's Czxid. That of "/" is 0.
const noCzxid = -1

// A reading is what was found of a znode.
type reading struct {
	read    *framework.Read // nil if there is no znode, or it can't be read
	refusal error           // why it can't be read
	listed  bool            // names were asked for
	names   []string        // of its children
}

// readAll reads the znodes, and lists those that have to be listed. It returns an error if the ensemble
// did not answer.
func readAll(ctx context.Context, c *framework.Client, wants []want) ([]reading, error) {
	l := batchRead{client: c, wants: wants, readings: make([]reading, len(wants))}
	var toList, toRead []int
	for i, w := range wants {
		if w.data != nil {
			toList = append(toList, i)
		} else {
			toRead = append(toRead, i)
		}
	}
	if len(toList) > 0 {
		withData, err := l.listWithStat(ctx, toList)
		if err != nil {
			return nil, err
		}
		toRead = append(toRead, withData...)
	}
	inner, err := l.read(ctx, toRead)
	if err != nil {
		return nil, err
	}
	return l.readings, l.list(ctx, inner)
}

// A batchRead fills readings, one for each want.
type batchRead struct {
	client   *framework.Client
	wants    []want
	readings []reading
}

func (l *batchRead) paths(at []int) []string {
	paths := make([]string, len(at))
	for i, k := range at {
		paths[i] = l.wants[k].path
	}
	return paths
}

// refuse notes why the znode could not be read. It returns an error that concerns all znodes.
func (l *batchRead) refuse(at int, err error) error {
	switch {
	case errors.Is(err, framework.ErrNoNode):
		l.readings[at] = reading{}
	case args.Unreadable(err):
		l.readings[at] = reading{refusal: err}
	default:
		return err
	}
	return nil
}

// listWithStat lists the znodes, and returns those whose data are to be read.
func (l *batchRead) listWithStat(ctx context.Context, at []int) ([]int, error) {
	var withData []int
	names, stats, errs := l.client.ChildrenEach(ctx, l.paths(at)...)
	for i, k := range at {
		if errs[i] != nil {
			if err := l.refuse(k, errs[i]); err != nil {
				return nil, err
			}
			continue
		}
		l.readings[k].read = &framework.Read{Stat: stats[i]}
		if l.wants[k].list {
			l.readings[k].listed, l.readings[k].names = true, names[i]
		}
		if l.wants[k].data(&stats[i]) {
			withData = append(withData, k)
		}
	}
	return withData, nil
}

// read reads the znodes, and returns those that have to be listed.
func (l *batchRead) read(ctx context.Context, at []int) ([]int, error) {
	if len(at) == 0 {
		return nil, nil
	}
	var inner []int
	reads, errs := l.client.GetEach(ctx, l.paths(at)...)
	for i, k := range at {
		if errs[i] != nil {
			if err := l.refuse(k, errs[i]); err != nil {
				return nil, err
			}
			continue
		}
		w, r, stat := l.wants[k], &l.readings[k], &reads[i].Stat
		if r.read != nil && r.read.Stat.Czxid != stat.Czxid { // created again since it was listed
			*r = reading{}
		}
		if r.read = &reads[i]; w.list && !r.listed && stat.Czxid != w.known && stat.NumChildren > 0 { // the watch notifies of others
			inner = append(inner, k)
		}
	}
	return inner, nil
}

// list lists the znodes of at.
func (l *batchRead) list(ctx context.Context, at []int) error {
	if len(at) == 0 {
		return nil
	}
	names, _, errs := l.client.ChildrenEach(ctx, l.paths(at)...)
	for i, k := range at {
		if errs[i] != nil {
			if err := l.refuse(k, errs[i]); err != nil { // it may have been deleted since it was read
				return err
			}
			continue
		}
		l.readings[k].listed, l.readings[k].names = true, names[i]
	}
	return nil
}
