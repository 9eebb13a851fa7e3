package sim_test

import (
	"maps"
	"net"
	"slices"
	"time"

	"github.com/docent-go/docent/recipes/lock"
)

// checkShares is the validator of "every key is served" and of "equal shares", once all is well. A
// server may have returned early: its key is served again a second later.
func (k *partitioning) checkShares() {
	limit := time.Now().Add(2*k.env.settling() + 30*time.Second)
	for {
		servers, least, most := k.shares()
		if len(servers) == len(partitionKeys) && most-least <= 1 {
			k.env.count("shares at the end", 1)
			return
		}
		if k.env.ctx.Err() != nil {
			return
		}
		if time.Now().After(limit) {
			if len(servers) < len(partitionKeys) {
				k.env.violated(everyKey, "all is well, and only %d keys are served: %v", len(servers), servers)
			}
			if most-least > 1 {
				k.env.violated(equalShares, "all is well, and members serve from %d to %d keys: %v", least, most, servers)
			}
			return
		}
		pass(k.env.plan.timeout / 40)
	}
}

// shares returns who serves each key, and how many keys members serve at least and at most.
func (k *partitioning) shares() (servers map[string]string, least, most int) {
	k.env.mu.Lock()
	defer k.env.mu.Unlock()
	servers = make(map[string]string)
	for _, t := range k.env.plan.targets {
		for _, s := range t.stakes {
			if t.kind == partitionKind && !k.env.over(s) {
				servers[t.path] = s.record.client.name
			}
		}
	}
	counts := make(map[string]int)
	for _, c := range k.env.clients {
		counts[c.name] = 0
	}
	for _, name := range servers {
		counts[name]++
	}
	all := slices.Collect(maps.Values(counts))
	return servers, slices.Min(all), slices.Max(all)
}

// partitionBugs are, for each guarantee of partitions, what its validator has to find.
func partitionBugs() []deliberate {
	return []deliberate{
		{oneServer, "one of the members divides the keys at another path", "has it with", func() bug {
			return bug{dividedAt: func(c *client) string {
				if c == c.env.clients[0] {
					return partitionRoot + "-other"
				}
				return partitionRoot
			}}
		}},
		{everyKey, "a contender for a key never leaves the queue", "only 3 keys", func() bug {
			return bug{harm: keepKey, plan: calm}
		}},
		{equalShares, "a connection loses every event of the members", "members serve from", func() bug {
			b := onConnections(func(c net.Conn) net.Conn { return newUnheard(c, partitionRoot+"/members", 1) })
			b.plan = calm
			return b
		}},
	}
}

// keepKey has the operator hold the lease of a key.
func keepKey(env *environment) {
	m, err := lock.NewMutex(env.operator, keysDir+partitionKeys[0])
	if err == nil {
		_, err = m.Lock(env.ctx)
	}
	if err != nil {
		panic(err)
	}
}
