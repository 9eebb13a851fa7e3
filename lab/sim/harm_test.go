package sim_test

import "time"

// A harm is a fault that may break a client's connection or delay what it carries, from one
// moment to another.
type harm struct {
	client   *client // nil for every client
	from, to time.Duration
}

// harm notes that a fault begins, and harms the client, or every client if c is nil, for the
// span at most.
func (env *environment) harm(c *client, span time.Duration) {
	env.mu.Lock()
	defer env.mu.Unlock()
	env.harms = append(env.harms, harm{c, env.now(), env.now() + span})
}

// harmedLocked returns whether a fault harmed the client, or any client if c is nil, at any time
// since the moment. It needs w.mu.
func (env *environment) harmedLocked(c *client, since time.Duration) bool {
	for _, h := range env.harms {
		if (c == nil || h.client == nil || h.client == c) && h.to >= since {
			return true
		}
	}
	return false
}

// harmed is harmedLocked for those without env.mu.
func (env *environment) harmed(c *client, since time.Duration) bool {
	env.mu.Lock()
	defer env.mu.Unlock()
	return env.harmedLocked(c, since)
}

// aftermath is for how long a fault that is over explains the loss of a lease: a client that
// has proven nothing since the fault began loses the lease a session timeout later, at most.
func (env *environment) aftermath() time.Duration { return env.plan.timeout + time.Second }
