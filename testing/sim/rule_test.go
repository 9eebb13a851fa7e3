package sim_test

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/docent-go/docent/testing/fault"
)

// fateKinds are all of them: what package fault names, what an embedded server can do,
// and what befalls clients.
func fateKinds() []*fateKind {
	return slices.Concat(ruleKinds(), serverKinds(), frontKinds(), leaderKinds(), clientKinds(), directoryKinds())
}

// struck are the operations that rules befall: those that locks are made of, more often.
var struck = []fault.Op{
	fault.Create, fault.Create, fault.Delete, fault.Delete, fault.Exists, fault.GetData, fault.GetChildren,
	fault.GetChildren, fault.Sync, fault.Multi, fault.Ping, fault.CloseSession, 0,
}

// ruleKinds are the actions of package fault, all but Pass, which does nothing.
func ruleKinds() []*fateKind {
	var kinds []*fateKind
	for _, action := range []fault.Action{
		fault.CutBefore, fault.DropReply, fault.HoldRequest, fault.HoldReply, fault.DelayRequest, fault.DelayReply,
		fault.DropEvent, fault.Garbage, fault.HalfAnswer, fault.OtherSession,
	} {
		kind := &fateKind{name: action.String(), weight: 5}
		ops := struck
		switch action {
		case fault.DropReply:
			kind.weight = 10
		case fault.DropEvent:
			ops = []fault.Op{fault.Event}
			kind.weight = 2
		case fault.Garbage, fault.HalfAnswer, fault.OtherSession:
			ops = []fault.Op{fault.Connect}
			kind.weight = 2
		case fault.CutBefore, fault.HoldReply, fault.DelayReply:
			ops = append(slices.Clone(struck), fault.Event, fault.Event, fault.Connect)
		}
		kind.begin = func(w *world, r *rand.Rand, span time.Duration) func() { return w.strike(r, action, ops, span) }
		kinds = append(kinds, kind)
	}
	return kinds
}

// strike adds a rule and returns what takes it away. A handshake that is struck needs
// somebody who connects.
func (w *world) strike(r *rand.Rand, action fault.Action, ops []fault.Op, span time.Duration) func() {
	rule := fault.Rule{Op: pick(r, ops...), Action: action, Skip: r.IntN(4), Times: 1 + r.IntN(3)}
	if action == fault.DelayRequest || action == fault.DelayReply {
		rule.Delay = 1 + span
	}
	if action == fault.DropEvent {
		// Of a lock's directory, none is lost but with the connection: that ZooKeeper loses none is what the
		// count of a directory goes by.
		rule.Path = pick(r, "**/_c_*", "**/_c_*", "/sim/exclusive")
	}
	c := w.clients[r.IntN(len(w.clients))]
	if rule.Op == fault.Connect {
		rule.Skip = 0
	}
	if action == fault.OtherSession || rule.Op != fault.Connect && r.IntN(2) == 0 {
		// A new session's id is what it is told to be; only who resumes can be told another's.
		rule.Session = max(1, c.current().Session().ID) // 0 would mean every session
	}
	w.tell("fate", "adds the rule", rule)
	var seen *fault.Handle // of Garbage: the client hangs up before it has heard all of it
	if action == fault.Garbage {
		met := rule
		met.Action = fault.Pass
		seen = w.srv.Rules().Add(met)
	}
	h := w.srv.Rules().Add(rule)
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
		w.count("fault "+action.String(), hits)
		if action == fault.DropEvent && h.Hits() > 0 {
			w.srv.Cut()
		}
	}
}
