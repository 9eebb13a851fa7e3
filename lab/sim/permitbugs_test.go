package sim_test

import (
	"context"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
)

// permitBugs are, for each guarantee of semaphores, what its validator has to find.
func permitBugs() []deliberate {
	return []deliberate{
		{atMostN, "a client takes the semaphore to have twice the permits", "of 3 permits", func() bug {
			return bug{number: first(func(n int) int { return 2 * n })}
		}},
		{allAtOnce, "a client acquires one permit in the place of several", "one transaction created 1 znodes", func() bug {
			return bug{locker: modest}
		}},
		{permitsReturn, "a permit's znode remains", "can't acquire and release all", func() bug { return bug{harm: leavePermit} }},
		{grantOrder, "a client creates a permit's znode without a place in the queue", "out of turn", func() bug {
			return bug{harm: jumpQueue}
		}},
	}
}

func modest(_ *worker, _ *framework.Client, h *handle) lock.Locker {
	s, ok := h.locker.(taker)
	if !ok {
		return h.locker
	}
	return taker{s.Semaphore, 1}
}

// leavePermit has the operator leave a znode among the permits'.
func leavePermit(env *environment) { env.putPermit() }

// jumpQueue has the operator create a permit's znode now and then, and delete it.
func jumpQueue(env *environment) {
	for env.now() < env.plan.horizon {
		if path := env.putPermit(framework.Ephemeral()); path != "" {
			_ = env.operator.Delete(env.ctx, path, framework.Guaranteed()) // the fault is done
		}
		pass(env.plan.timeout / 8)
	}
}

func (env *environment) putPermit(opts ...framework.CreateOption) string {
	ctx, cancel := context.WithTimeout(env.ctx, env.plan.timeout)
	defer cancel()
	path, err := env.operator.Create(ctx, permitsPath+"/leases/_c_-lease-", nil,
		append(opts, framework.Sequential(), framework.WithParents())...)
	if err != nil {
		return ""
	}
	return path
}
