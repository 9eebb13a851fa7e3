package boundary

import (
	"errors"
	"fmt"
	"slices"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
)

// Apply calls apply with each option, and returns the faults of options that are nil.
func Apply[O any](opts []O, apply func(O)) (faults []error) {
	for i, opt := range opts {
		if any(opt) == nil {
			faults = append(faults, fmt.Errorf("option %d: must not be nil", i))
			continue
		}
		apply(opt)
	}
	return faults
}

// Client returns the fault of a client that is nil.
func Client(c *framework.Client) error {
	if c == nil {
		return errors.New("client: must not be nil")
	}
	return nil
}

// Function returns the fault of a function that is nil; name is the argument's.
func Function(name string, given bool) error {
	if !given {
		return fmt.Errorf("%s: must not be nil", name)
	}
	return nil
}

// Target returns the faults of the client and the path that a constructor gets.
func Target(c *framework.Client, path string) (faults []error) {
	if err := Client(c); err != nil {
		faults = append(faults, err)
	}
	if err := framework.ValidatePath(path); err != nil {
		faults = append(faults, err)
	} else if path == "/" {
		faults = append(faults, errors.New("path: must not be the root"))
	} else if framework.IsEpoch(path) || c != nil && framework.IsEpoch(c.AbsolutePath(path)) {
		faults = append(faults, fmt.Errorf("path %q: is the epoch of another lock, or below it", path))
	}
	return faults
}

// ACL returns a copy of the list that an option gets. If the list is empty, ACL adds that to faults.
func ACL(list []acl.Entry, faults *[]error) []acl.Entry {
	if len(list) == 0 {
		*faults = append(*faults, errors.New("ACL: must have at least one entry"))
	}
	return slices.Clone(list)
}
