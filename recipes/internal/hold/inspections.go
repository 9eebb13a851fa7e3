package hold

import (
	"sync"

	"github.com/docent-go/docent/framework"
)

// maxInspections is the maximum number of a client's inspections that run at one time. After a
// reconnection all watches of all holds fire at once. With many holds, their reads would delay the
// heartbeat that follows a reconnection, and so cost the holds their session.
const maxInspections = 64

// inspections run the inspections of one client's monitors, on the goroutines that ask for them.
type inspections struct {
	mu      sync.Mutex // guards following
	running int
	queue   []*monitor // not empty only while maxInspections run
}

type inspectionsKey struct{}

func inspectionsOf(c *framework.Client) *inspections {
	return c.Shared(inspectionsKey{}, func() any { return new(inspections) }).(*inspections)
}

// run runs m's inspection, and then those that wait. If maxInspections run already, it returns at
// once, and one of their goroutines runs m's.
func (i *inspections) run(m *monitor) {
	if !i.begin(m) {
		return
	}
	for m != nil {
		m.inspect()
		m = i.next()
	}
}

// begin reports whether m's inspection may run now. Otherwise it is queued.
func (i *inspections) begin(m *monitor) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.running == maxInspections {
		i.queue = append(i.queue, m)
		return false
	}
	i.running++
	return true
}

// next takes a monitor from the queue. It returns nil if none waits: then the goroutine ends.
func (i *inspections) next() *monitor {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.queue) == 0 {
		i.running--
		i.queue = nil
		return nil
	}
	m := i.queue[0]
	i.queue[0] = nil // append moves the rest when it runs out of space
	i.queue = i.queue[1:]
	return m
}
