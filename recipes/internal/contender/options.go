package contender

import (
	"fmt"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/boundary"
	"github.com/docent-go/docent/recipes/internal/hold"
	"github.com/docent-go/docent/recipes/lease"
)

// Faults returns the faults of the arguments that all constructors have.
func Faults(c *framework.Client, path string, policy lease.LossPolicy) []error {
	faults := boundary.Target(c, path)
	if policy != lease.AtDeadline && policy != lease.OnSuspend {
		faults = append(faults, fmt.Errorf("loss policy %v: must be AtDeadline or OnSuspend", policy))
	}
	return faults
}

// NewLease returns the first lease of a new hold that is lost by the policy, with the members if it is
// a Multi's. revoked is called as [hold.Options].Revoked is; it may be nil.
func NewLease(
	o hold.Options, policy lease.LossPolicy, revoked func(*lease.Lease), members ...*lease.Lease,
) *lease.Lease {
	o.OnSuspend = policy == lease.OnSuspend
	if revoked != nil {
		o.Revoked = func(oldest *hold.Share) { revoked((*lease.Lease)(oldest)) }
	}
	o.Lost = func(cause error) error { return &lease.LostError{Path: o.Path, Cause: cause} }
	var shares []*hold.Share
	for _, member := range members {
		shares = append(shares, ShareOf(member))
	}
	return (*lease.Lease)(hold.New(o, shares...))
}

// ShareOf returns the lease's share in its hold.
func ShareOf(l *lease.Lease) *hold.Share { return (*hold.Share)(l) }
