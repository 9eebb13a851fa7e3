package framework

import (
	"fmt"

	"github.com/docent-go/docent/framework/acl"
)

// validateACL returns all faults of the list; its errors name the argument what.
func validateACL(what string, list []acl.Entry) error {
	if len(list) == 0 {
		return fmt.Errorf("%s: must have at least one entry", what)
	}
	for i, entry := range list {
		if entry.Perms < 1 || entry.Perms > acl.All {
			return fmt.Errorf("%s: entry %d: permissions %d: must be between 1 and %d", what, i, entry.Perms, acl.All)
		}
		if entry.Scheme == "" {
			return fmt.Errorf("%s: entry %d: scheme must not be empty", what, i)
		}
	}
	return nil
}
