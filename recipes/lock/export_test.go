package lock

import "github.com/docent-go/docent/framework"

// RequestsRelease reads the data of a znode, for the fuzz target.
var RequestsRelease = requestsRelease

// Registered returns how many holds the registry of c's client refers to, lost ones included.
func Registered(c *framework.Client) int {
	r := registryOf(c)
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.holds) + len(r.lost)
}
