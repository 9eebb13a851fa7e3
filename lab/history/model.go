package history

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
)

// A Model says how a lock behaves whose operations come one after the other.
type Model struct {
	Name string

	reenters bool // an owner that has it gets it again
	shares   bool // there are owners that may have it together
}

// Mutex is a lock that one lease is of at a time.
func Mutex() Model { return Model{Name: "mutex"} }

// Reentrant is a lock that one owner has at a time, by any number of leases.
func Reentrant() Model { return Model{Name: "reentrant", reenters: true} }

// ReadWrite is a lock that any number of owners read or one writes. It is reentrant: who
// writes may read as well.
func ReadWrite() Model { return Model{Name: "readwrite", reenters: true, shares: true} }

// Multi is a number of locks, each a mutex, that a lease is of one or several of.
func Multi() Model { return Model{Name: "multi"} }

// modelOf returns the model with the name.
func modelOf(name string) (Model, bool) {
	for _, m := range []Model{Mutex(), Reentrant(), ReadWrite(), Multi()} {
		if m.Name == name {
			return m, true
		}
	}
	return Model{}, false
}

// A step is porcupine's input: one operation of one lease, or of an owner.
type step struct {
	kind   Kind // Granted, Released, Lost, Counted, or "" for an end that was not seen
	lease  string
	owner  string
	shared bool
	stakes []LockRef
	count  int
}

func (s step) String() string {
	if s.kind == Counted {
		return fmt.Sprintf("%s has %d", s.owner, s.count)
	}
	mode := ""
	if s.shared {
		mode = " shared"
	}
	kind := string(s.kind)
	if kind == "" {
		kind = "killed"
	}
	var locks []string
	for _, st := range s.stakes {
		locks = append(locks, fmt.Sprintf("%s fence %d", st.Lock, st.Fence))
	}
	return fmt.Sprintf("%s%s %s (%s) of %s", kind, mode, s.lease, strings.Join(locks, ", "), s.owner)
}

// A floor is what the next fence of a lock has to exceed.
type floor struct {
	lock  string
	all   int64 // if it is to be alone: greatest fence so far
	alone int64 // if it shares: greatest of those that were alone
}

// A state is who has which locks. It never changes; a step makes another one.
type state struct {
	holders []step  // sorted by lease
	floors  []floor // sorted by lock
}

// porcupine returns the model as porcupine wants it.
func (m Model) porcupine() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return state{} },
		Step: func(at, input, _ any) (bool, any) { return m.step(at.(state), input.(step)) },
		Equal: func(a, b any) bool {
			x, y := a.(state), b.(state)
			return slices.EqualFunc(x.holders, y.holders, func(h, g step) bool { return h.lease == g.lease }) &&
				slices.Equal(x.floors, y.floors)
		},
		DescribeOperation: func(input, _ any) string { return input.(step).String() },
		DescribeState:     func(at any) string { return at.(state).String() },
	}
}

func (s state) String() string {
	if len(s.holders) == 0 {
		return "free"
	}
	var held []string
	for _, h := range s.holders {
		held = append(held, h.String())
	}
	return strings.Join(held, "; ")
}

// step returns whether the operation is possible in a state, and the state after it.
func (m Model) step(at state, s step) (bool, state) {
	switch s.kind {
	case Granted:
		return m.grant(at, s)
	case Counted:
		n := 0
		for _, h := range at.holders {
			if h.owner == s.owner {
				n++
			}
		}
		return n == s.count, at
	}
	i, found := slices.BinarySearchFunc(at.holders, s.lease, byLease)
	if !found {
		return false, at
	}
	return true, state{slices.Delete(slices.Clone(at.holders), i, i+1), at.floors}
}

func (m Model) grant(at state, s step) (bool, state) {
	next := state{floors: slices.Clone(at.floors)}
	for _, st := range s.stakes {
		again, ok := m.admits(at, s, st)
		if !ok {
			return false, at
		}
		if !again && !next.raise(st, s.shared) {
			return false, at
		}
	}
	i, found := slices.BinarySearchFunc(at.holders, s.lease, byLease)
	if found {
		return false, at
	}
	next.holders = slices.Insert(slices.Clone(at.holders), i, s)
	return true, next
}

// admits reports whether the lease may be granted together with the present ones, and whether its
// owner has one of them.
func (m Model) admits(at state, s step, st LockRef) (again, ok bool) {
	upgrade := !s.shared
	for _, h := range at.holders {
		i := slices.IndexFunc(h.stakes, func(other LockRef) bool { return other.Lock == st.Lock })
		switch {
		case i < 0:
		case m.reenters && h.owner == s.owner:
			if h.stakes[i].Fence != st.Fence {
				return false, false // one hold, one znode
			}
			again, upgrade = true, upgrade && h.shared
		case m.shares && h.shared && s.shared:
		default:
			return false, false
		}
	}
	return again, !again || !upgrade
}

// raise checks a new holder's fence and raises the floor to it.
func (s *state) raise(st LockRef, shared bool) bool {
	i, found := slices.BinarySearchFunc(s.floors, st.Lock, func(f floor, lock string) int { return cmp.Compare(f.lock, lock) })
	if !found {
		s.floors = slices.Insert(s.floors, i, floor{lock: st.Lock})
	}
	f := &s.floors[i]
	if shared && st.Fence <= f.alone || !shared && st.Fence <= f.all {
		return false
	}
	f.all = max(f.all, st.Fence)
	if !shared {
		f.alone = st.Fence
	}
	return true
}

func byLease(h step, lease string) int { return cmp.Compare(h.lease, lease) }
