package sim_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/docent-go/docent/testing/fault"
)

// faultKinds are all of them: the actions of package fault, the faults of an embedded server, and
// those of clients.
func faultKinds() []*faultKind {
	return slices.Concat(ruleKinds(), serverKinds(), frontKinds(), leaderKinds(), clientKinds(), directoryKinds())
}

// faulty are the operations of rules. Those of locks are in it more often.
var faulty = []fault.Op{
	fault.Create, fault.Create, fault.Delete, fault.Delete, fault.Exists, fault.GetData, fault.GetChildren,
	fault.GetChildren, fault.Sync, fault.Multi, fault.Ping, fault.CloseSession, 0,
}

// ruleKinds are the actions of package fault, all but Pass, which does nothing.
func ruleKinds() []*faultKind {
	var kinds []*faultKind
	for _, action := range []fault.Action{
		fault.CutBefore, fault.DropReply, fault.HoldRequest, fault.HoldReply, fault.DelayRequest, fault.DelayReply,
		fault.Garbage, fault.HalfAnswer, fault.OtherSession,
	} {
		kind := newRuleKind(action.String(), action, faulty)
		switch action {
		case fault.DropReply:
			kind.weight = 10
		case fault.Garbage, fault.HalfAnswer, fault.OtherSession:
			kind.ops = []fault.Op{fault.Connect}
			kind.weight = 2
		case fault.CutBefore, fault.HoldReply, fault.DelayReply:
			kind.ops = append(slices.Clone(faulty), fault.Event, fault.Event, fault.Connect)
		}
		kinds = append(kinds, kind)
	}
	return append(kinds, &faultKind{name: fault.DropEvent.String(), weight: 4, spares: true, begin: (*environment).dropEvents})
}

// newRuleKind returns the kind of fault that adds a rule with the action and one of ops.
func newRuleKind(name string, action fault.Action, ops []fault.Op) *faultKind {
	kind := &faultKind{name: name, weight: 5, action: action, ops: ops}
	kind.begin = func(env *environment, r *rand.Rand, span time.Duration) func() { return env.addRule(r, kind, span) }
	return kind
}

// readKinds are the actions on reads of several znodes. strike draws them, and not newFates.
func readKinds() []*faultKind {
	var kinds []*faultKind
	for _, action := range []fault.Action{
		fault.CutBefore, fault.DropReply, fault.HoldRequest, fault.HoldReply, fault.DelayRequest, fault.DelayReply,
	} {
		name := fmt.Sprintf("%v of %v", action, fault.MultiRead)
		kinds = append(kinds, newRuleKind(name, action, []fault.Op{fault.MultiRead}))
	}
	return kinds
}

// dropEvents adds a rule by which servers drop events of one lock's znodes. Servers do so if a
// session may not read the znode at that moment. The watch ends with the event, and the connection
// stays.
func (env *environment) dropEvents(r *rand.Rand, span time.Duration) func() {
	t := env.plan.targets[r.IntN(len(env.plan.targets))]
	rule := fault.Rule{Op: fault.Event, Path: env.plan.root + t.path + "**", Action: fault.DropEvent, Times: fault.Forever}
	if r.IntN(2) == 0 {
		rule.Session = max(1, env.clients[r.IntN(len(env.clients))].current().Session().ID) // 0 would mean every session
	}
	env.report("fault", "adds the rule", rule)
	env.mu.Lock()
	t.drops = max(t.drops, env.now()+span)
	env.mu.Unlock()
	h := env.srv.Rules().Add(rule)
	return func() {
		h.Release()
		env.count("fault "+fault.DropEvent.String(), h.Hits())
	}
}

// addRule adds a rule and returns the function that removes it. A rule for a handshake needs a
// client that connects.
func (env *environment) addRule(r *rand.Rand, kind *faultKind, span time.Duration) func() {
	action := kind.action
	rule := fault.Rule{Op: pick(r, kind.ops...), Action: action, Skip: r.IntN(4), Times: 1 + r.IntN(3)}
	if action == fault.DelayRequest || action == fault.DelayReply {
		rule.Delay = 1 + span
	}
	c := env.clients[r.IntN(len(env.clients))]
	if rule.Op == fault.Connect {
		rule.Skip = 0
	}
	if action == fault.OtherSession || rule.Op != fault.Connect && r.IntN(2) == 0 {
		// A new session's id is what it is told to be; only who resumes can be told another's.
		rule.Session = max(1, c.current().Session().ID) // 0 would mean every session
	}
	env.report("fault", "adds the rule", rule)
	var seen *fault.Handle // of Garbage: the client hangs up before it has heard all of it
	if action == fault.Garbage {
		met := rule
		met.Action = fault.Pass
		seen = env.srv.Rules().Add(met)
	}
	h := env.srv.Rules().Add(rule)
	if rule.Op == fault.Connect {
		c.line.cut()
	}
	return func() {
		h.Release()
		hits := h.Hits()
		if seen != nil {
			seen.Release()
			hits = seen.Hits()
		}
		env.count("fault "+kind.name, hits)
	}
}
