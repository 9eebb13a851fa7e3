// Package partition divides keys among the processes that serve them. Each key is served by one
// process at a time. kazoo's SetPartitioner does this, too, and stops all work at each change.
//
// Begin with [New] and [Partition.Run]. The members are a group: one ephemeral znode each. Every member computes
// the same division from the same list of members. Each member gets as many keys as the others, or one more, and
// few keys move when a member comes or goes. For each of its keys a member holds a lease, as a lock's holder does.
// Members may see different lists for a moment: then a key waits for its server, and it never has two.
//
// Stability: may change.
//
// # Members that come and go
//
// A key without a server moves at once: when its member has left, as soon as the function has returned there,
// and when its member has died, as soon as the ensemble has ended that member's session. If the member that
// is to have the key next has died by then, too, the key waits for the end of that session as well. A key
// that is served moves when the members have not changed for the settle time, and after ten times the
// settle time at the most: see recipes.WithSettle. Until then members that come serve nothing, and
// those that stay serve more. When at least half of those that have keys are gone, nothing waits. Members that
// may not write the directory of the members never settle: see the recipe's page.
//
// # Hand-over
//
// A key moves when its server returns: the context of the function ends with [ErrMoved] as its cause,
// and the next member is granted the key's lease when the function has returned. A function that does
// not return keeps its key, and a warning is logged after ten seconds.
//
// # Different keys
//
// Members with different keys, as during a rolling change of the configuration, divide their own keys
// among those with the same ones. A key that both have is served by one of two members, and the other
// one waits for it. So every key of every member is served all the while.
//
// The znodes are docent's own: kazoo's SetPartitioner must not use the same path.
package partition
