package inspect

import (
	"slices"
	"strings"

	"github.com/docent-go/docent/internal/zkpath"
)

// Of returns the lock whose directory is dir; false if dir has no contender and is no schedule. It sends no request.
//
// Of needs the names of the directory's children, and those below children named locks and leases.
// The order and most states follow from the names. The contenders' data and Stats add the rest.
// The data of dir itself are needed for a [Schedule] and a semaphore of kazoo, dir.Queue for the latter's waiters,
// and the data of dir alone for [Exclusive].
func Of(dir Znode) (Lock, bool) {
	for _, of := range []func(Znode) (Lock, bool){exclusiveOf, scheduleOf, semaphoreOf, kazooSemaphoreOf, queuesOf, unknownScheduleOf} {
		if l, ok := of(dir); ok {
			l.Complete = !slices.ContainsFunc(l.Contenders, func(c Contender) bool { return !c.Read() })
			return l, true
		}
	}
	return Lock{Path: dir.Path, Complete: true}, false
}

// exclusiveOf returns docent's unfair mutex, which is the znode itself.
func exclusiveOf(z Znode) (Lock, bool) {
	l := exclusiveAt(z)
	m := l.Contenders[0].Meta
	return l, m != nil && m.Attempt != "" && len(z.Children) == 0
}

// exclusiveAt returns the unfair mutex that the znode is, as its epoch shows if its metadata do not.
func exclusiveAt(z Znode) Lock {
	c := contenderOf(z, Contender{Side: Alone, State: Holds})
	return Lock{Path: z.Path, Kind: Exclusive, Permits: 1, Contenders: []Contender{c}, Complete: true}
}

// queuesOf returns the lock whose contenders are the numbered children of the directory.
func queuesOf(dir Znode) (Lock, bool) {
	l := Lock{Path: dir.Path}
	for n, f := range formats() {
		contenders := f.contenders(dir.Children)
		for i := range contenders {
			contenders[i].queue = n
		}
		if len(contenders) == 0 || areForeign(contenders) {
			continue
		}
		kind, permits := f.kindOf(contenders)
		if l.Kind == "" {
			l.Kind, l.Permits = kind, permits
		} else {
			l.Mixed = true
		}
		l.Contenders = append(l.Contenders, contenders...)
	}
	return l, l.Kind != ""
}

// areForeign reports whether the znodes have the names of contenders by chance: all that were read belong
// to no session and hold no metadata, and no name has the id that the libraries write. Contenders that
// other recipes made are ephemeral.
func areForeign(among []Contender) bool {
	read := false
	for _, c := range among {
		if hasID(c) || c.Read() && (c.Session != 0 || c.Meta != nil) {
			return false
		}
		read = read || c.Read()
	}
	return read
}

// hasID reports whether the name of the contender's znode begins as those that the libraries write.
func hasID(c Contender) bool {
	_, name := zkpath.Split(c.Znode)
	return strings.HasPrefix(name, protection) || isKazooName(name)
}
