package lock

import (
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/hold"
)

// RequestsRelease reads the data of a znode, for the fuzz target.
var RequestsRelease = hold.RequestsRelease

// Registered returns how many entries and losses the owners of c's client refer to.
func Registered(c *framework.Client) int {
	o := ownersOf(c)
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.entries) + len(o.lost)
}
