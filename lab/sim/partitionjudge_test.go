package sim_test

import (
	"fmt"
	"maps"
	"slices"

	"github.com/docent-go/docent/recipes/lock"
)

// checkShares is the validator of "every key is served" and of "equal shares", once all is well. A
// server may have returned early: its key is served again a second later.
func (k *partitioning) checkShares() {
	k.env.eventually("shares at the end", func() (guarantee, string) {
		servers, least, most := k.shares()
		switch {
		case len(servers) < len(partitionKeys):
			return everyKey, fmt.Sprintf("only %d keys are served: %v", len(servers), servers)
		case most-least > 1:
			return equalShares, fmt.Sprintf("members serve from %d to %d keys: %v", least, most, servers)
		}
		return "", ""
	})
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
		{oneServer, "one of the members divides the keys at another path", "has it with", astray(partitionRoot)},
		{everyKey, "a contender for a key never leaves the queue", "only 3 keys", func() bug {
			return bug{plan: calm, harm: func(env *environment) {
				made(made(lock.NewMutex(env.operator, keysDir+partitionKeys[0])).Lock(env.ctx)) // and keeps it
			}}
		}},
		{equalShares, "a connection loses every event of the members", "members serve from", unheard(partitionRoot+"/members", 1)},
	}
}
