package lock

import (
	"sync/atomic"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/hold"
)

// Registered returns how many entries and losses the owners of c's client refer to.
func Registered(c *framework.Client) int {
	o := ownersOf(c)
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.entries) + len(o.lost)
}

// GrantAfterEnd records a grant of the owner whose hold has ended by a release before.
func GrantAfterEnd(of Owner) {
	o := &owners{entries: make(map[ownerKey]*entry), lost: make(map[ownerKey]*hold.Hold)}
	e := &entry{lock: &queueLock{latest: new(atomic.Pointer[entry])}, key: ownerKey{path: "/a", caller: caller{owner: of}}, live: true, driven: true}
	o.entries[e.key] = e
	h := new(hold.Hold)
	o.ended(e, h, nil)
	o.granted(e, nil, h)
}
