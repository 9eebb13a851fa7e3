package sim_test

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"
)

// checkList is the validator of "last good list": the permanent instance is in every list that was read
// once, also during an outage.
func (x *registrant) checkList(what string, stale bool, list []instance) {
	list = x.env.bug.instances(stale, list)
	x.env.count("discovery lists", 1)
	if stale {
		x.env.count("discovery stale lists", 1)
	}
	if !slices.ContainsFunc(list, func(in instance) bool { return in.ID == permanentID }) {
		x.env.violated(lastGoodList, "%s of %s has %d instances, and none is the permanent one (stale: %v)",
			what, x.client.name, len(list), stale)
	}
}

// checkEnd is the validator of "registered instances", once all is well: the client's instance is
// registered as it was last updated, no instance but the clients' is, and all lists show the same.
func (x *registrant) checkEnd() {
	x.env.eventually("discovery at the end", func() (guarantee, string) {
		problem := x.problem()
		if problem != "" {
			problem = "for " + x.client.name + " " + problem
		}
		return registeredOnly, problem
	})
}

// problem returns what is not as it has to be at the end.
func (x *registrant) problem() string {
	exist := x.exist()
	ids := append(make([]string, 0, len(x.env.clients)+1), permanentID)
	for _, c := range x.env.clients {
		ids = append(ids, c.name)
	}
	slices.Sort(ids)
	if !slices.Equal(slices.Sorted(maps.Keys(exist)), ids) || exist[x.client.name] != x.registration.Instance().Port {
		return "the registered instances are not those of the clients"
	}
	if !maps.Equal(ports(x.service.Instances()), exist) {
		return "the list is not what is registered"
	}
	ctx, cancel := context.WithTimeout(x.env.ctx, time.Second)
	defer cancel()
	read, err := x.registry.Instances(ctx, serviceName)
	x.env.inspect(err)
	if err != nil || !maps.Equal(ports(read), exist) {
		return "Instances does not return what is registered"
	}
	return ""
}

// exist returns the ports of the instances in the tree, by ID.
func (k *discovering) exist() map[string]int {
	k.env.mu.Lock()
	defer k.env.mu.Unlock()
	found := make(map[string]int)
	for path, v := range k.past.last() {
		if path == servicesRoot || path == servicesRoot+"/"+serviceName {
			continue
		}
		if v.data == canary { // the operator's, for a while: see holdPath
			continue
		}
		var in struct {
			ID   string
			Port int
		}
		if err := json.Unmarshal([]byte(v.data), &in); err != nil {
			k.env.violatedLocked(registeredOnly, "%s is no instance", path)
		}
		found[in.ID] = in.Port
	}
	return found
}

func ports(list []instance) map[string]int {
	found := make(map[string]int)
	for _, in := range list {
		found[in.ID] = in.Port
	}
	return found
}

// discoveryBugs are, for each guarantee of discovery, what its validator has to find.
func discoveryBugs() []deliberate {
	return []deliberate{
		{registeredOnly, "a connection loses every third event of the instances", "the list is not", unheard(servicesRoot, 3)},
		{lastGoodList, "a client takes a stale list for an empty one", "none is the permanent one", func(b *bug) {
			b.instances = func(stale bool, list []instance) []instance {
				if stale {
					return nil
				}
				return list
			}
		}},
	}
}
