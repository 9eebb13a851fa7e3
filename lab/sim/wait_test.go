package sim_test

import (
	"slices"
	"time"

	"github.com/docent-go/docent/framework"
)

// A wait is a call of Lock, TryLock or Do that has not returned.
type wait struct {
	targets []*target
	permits int  // of a semaphore; 0 for a lock
	shared  bool // with others that share
	since   time.Duration
}

// waits notes that the worker asks for a lock.
func (k *worker) waits(h *handle, shared bool) {
	x := &wait{shared: shared, permits: h.permits, since: k.env.now()}
	if h.target != nil {
		x.targets = []*target{h.target}
	} else {
		for _, at := range k.plan.multi {
			x.targets = append(x.targets, k.env.target(at))
		}
	}
	k.env.mu.Lock()
	defer k.env.mu.Unlock()
	k.waiting = x
}

// waitEnded notes that the worker does not wait any more.
func (k *worker) waitEnded() {
	k.env.mu.Lock()
	defer k.env.mu.Unlock()
	if k.waiting == nil {
		return
	}
	for _, t := range k.waiting.targets {
		if !k.waiting.shared {
			t.writers = k.env.now()
		}
		if len(k.waiting.targets) > 1 || t.permits > 0 { // it may have had some of them, or was ahead
			t.freed = k.env.now()
		}
	}
	k.waiting = nil
}

// settling is for how long a fault that is over may delay others: a client that it has cut off
// has lost its session by then, and a server has expired it.
func (env *environment) settling() time.Duration { return 2*env.plan.timeout + 5*time.Second }

// prompt is the time of an attempt that nothing delays. Up to eight workers share a connection on
// which frames follow one another. Each has some requests of its own to make, and a znode to
// delete if it withdraws. A contender for an UnfairMutex also pauses, for milliseconds. The tasks of
// each further recipe send frames on that connection too.
func (env *environment) prompt() time.Duration {
	frames := 100 + 50*len(env.plan.recipes)
	return time.Second/4 + time.Duration(frames)*env.plan.latency
}

// watchWaits looks at the workers now and then, until ctx of the environment or over ends.
func (env *environment) watchWaits(over <-chan struct{}) {
	tick := time.NewTicker(env.plan.timeout / 8)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			env.checkWaits()
		case <-over:
			return
		}
	}
}

// checkWaits is the validator of "liveness" for workers that wait though nothing is in their way.
func (env *environment) checkWaits() {
	env.mu.Lock()
	defer env.mu.Unlock()
	for _, k := range env.workers {
		if k.waiting == nil {
			continue
		}
		since, free := env.freeSince(k)
		if free && env.now()-since > env.prompt() && !env.harmedLocked(nil, since-env.settling()) {
			env.violatedLocked(liveness, "%s waits since %v, and nothing is in its way since %v: %s",
				k.name, k.waiting.since, since, k.doing)
			k.waiting = nil // it is enough to say it once
		}
	}
}

// freeSince returns since when nothing has been in the worker's way; false if something is. It
// needs env.mu.
func (env *environment) freeSince(k *worker) (since time.Duration, free bool) {
	since = max(k.waiting.since, k.c.connected)
	if k.c.state != framework.Connected {
		return 0, false
	}
	targets, entangled := k.waiting.targets, k.waiting.permits == 0 && env.entangled(k)
	if entangled {
		targets = env.plan.contended()
	}
	for _, t := range targets {
		since = max(since, t.freed)
		if t.drops > 0 { // a waiter whose event was dropped looks within two session timeouts
			since = max(since, t.drops+2*k.env.plan.timeout)
		}
		if t.permits > 0 && !env.hasRoom(t) {
			return 0, false
		}
		for _, s := range t.stakes {
			if t.permits == 0 && !env.over(s) && (entangled || k.keptBy(s)) {
				return 0, false
			}
		}
	}
	if !k.waiting.shared {
		return since, true
	}
	since = max(since, k.waiting.targets[0].writers)
	for _, other := range env.workers {
		if x := other.waiting; x != nil && !x.shared && x.of(k.waiting.targets[0]) {
			return 0, false
		}
	}
	return since, true
}

// keptBy reports whether the lock is in the worker's way.
func (k *worker) keptBy(s *lockRecord) bool {
	local := s.target.kind == "mutex" && k.c.plan.handoff > 0 // a Local, which has no owners
	if s.target.reentrant() && !local && s.party == k.party() {
		return false
	}
	return !s.shared || !k.waiting.shared
}

// entangled reports whether another worker wants several locks together: then it may have what k
// waits for, and wait for any other. It needs env.mu.
func (env *environment) entangled(k *worker) bool {
	return slices.ContainsFunc(env.workers, func(other *worker) bool {
		return other != k && other.waiting != nil && len(other.waiting.targets) > 1
	})
}

func (x *wait) of(t *target) bool { return slices.Contains(x.targets, t) }
