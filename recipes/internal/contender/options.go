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

// NewLease returns the first lease of a new hold that is lost by the policy. revoked is called as
// [hold.Options].Revoked is; it may be nil.
func NewLease(
	o hold.Options, policy lease.LossPolicy, revoked func(*lease.Lease), members ...*lease.Lease,
) *lease.Lease {
	o.OnSuspend = policy == lease.OnSuspend
	if revoked != nil {
		o.Revoked = func(oldest *hold.Share) { revoked(oldest.Of.(*lease.Lease)) }
	}
	return lease.New(o, members...)
}
