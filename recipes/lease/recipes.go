package lease

import "github.com/docent-go/docent/recipes/internal/hold"

// New returns the first lease of a new hold, with the members if it is a Multi's. It is for docent's
// recipes.
func New(o hold.Options, members ...*Lease) *Lease {
	if o.Lost == nil {
		o.Lost = func(cause error) error { return &LostError{Path: o.Path, Cause: cause} }
	}
	l := &Lease{members: members}
	l.share.Of = l
	hold.New(o, &l.share)
	return l
}

// Join returns one more lease of the hold, or nil if the hold has ended. It is for docent's recipes.
func Join(h *hold.Hold) *Lease {
	l := new(Lease)
	l.share.Of = l
	if !h.Join(&l.share) {
		return nil
	}
	return l
}

// ShareOf returns the lease's share in its hold. It is for docent's recipes.
func ShareOf(l *Lease) *hold.Share { return &l.share }

// Latest returns the hold's latest lease, or nil if there is none. It is for docent's recipes.
func Latest(h *hold.Hold) *Lease {
	_, share := h.Shares()
	if share == nil {
		return nil
	}
	return share.Of.(*Lease)
}
