package cli

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/docent-go/docent/cmd/docent/inspect"
)

// FollowFlags bound what "watch" and "serve" read.
type FollowFlags struct{ max, rate int }

// Define defines the flags.
func (f *FollowFlags) Define(set *pflag.FlagSet) {
	set.IntVar(&f.max, "max", 100_000, "copy so many znodes at most, those of no lock included")
	set.IntVar(&f.rate, "rate", 1_000, "read so many znodes a second, 0 for as many as possible")
}

// Check returns what is wrong with the flags.
func (f *FollowFlags) Check() error {
	var faults []error
	if f.max < 1 {
		faults = append(faults, fmt.Errorf("--max %d: must be 1 or more", f.max))
	}
	if f.rate < 0 {
		faults = append(faults, fmt.Errorf("--rate %d: must not be negative", f.rate))
	}
	return errors.Join(faults...)
}

// Limits returns what the flags say.
func (f *FollowFlags) Limits() inspect.FollowLimits {
	return inspect.FollowLimits{Znodes: f.max, Rate: cmp.Or(f.rate, -1)} // a rate of 0 is no bound
}
