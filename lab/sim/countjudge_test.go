package sim_test

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"iter"
	"math/bits"
	"slices"
	"strconv"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/counter"
	"github.com/docent-go/docent/testing/fault"
)

// The guarantees of counters and values.
const (
	appliedOnce guarantee = "applied once"
	oneOrder    guarantee = "one order"
	latestValue guarantee = "latest value"
)

// checkAdditions is the validator of "applied once" and "one order" for counters.
func (k *counting) checkAdditions() {
	k.env.mu.Lock()
	defer k.env.mu.Unlock()
	byPath := make(map[string][]*addition)
	for _, a := range k.additions {
		byPath[a.path] = append(byPath[a.path], a)
	}
	for path, additions := range byPath {
		number := int64(0)
		if all := k.writes[path]; len(all) > 0 {
			number = int64(binary.BigEndian.Uint64([]byte(all[len(all)-1].data)))
		}
		for _, a := range additions {
			k.checkTimes(a, number)
		}
		k.checkOrder(additions, len(k.writes[path]))
	}
}

// checkTimes is the validator of "applied once": the number that remains has an addition as often as its
// client knows.
func (k *counting) checkTimes(a *addition, number int64) {
	k.env.counts["additions "+string(a.outcome)]++
	least, most := 0, 0
	switch a.outcome {
	case applied:
		least, most = 1, 1
	case unknown:
		most = 1
	}
	if n := a.times(number); n < least || n > most {
		k.env.violatedLocked(appliedOnce, "the addition of digit %d to %s is %s, and was applied %d times", a.digit, a.path, a.outcome, n)
	}
}

// checkOrder is the validator of "one order" for a counter: each result has the additions of all
// smaller results, of all calls that had returned before, and of no later call.
func (k *counting) checkOrder(additions []*addition, writes int) {
	known := slices.DeleteFunc(slices.Clone(additions), func(a *addition) bool { return a.outcome != applied })
	k.env.counts["additions combined"] += max(0, len(known)-writes)
	slices.SortFunc(known, func(a, b *addition) int {
		return cmp.Compare(bits.OnesCount64(uint64(a.result)), bits.OnesCount64(uint64(b.result)))
	})
	before := int64(0)
	for _, a := range known {
		if a.result&before != before || a.result == before || a.times(a.result) != 1 {
			k.env.violatedLocked(oneOrder, "the result %x of %s lacks an addition of %x", a.result, a.path, before)
		}
		before = a.result
		for _, other := range additions {
			n := other.times(a.result)
			switch {
			case n > 1, n > 0 && (other.began > a.returned || other.outcome == refused):
				k.env.violatedLocked(oneOrder, "the result %x of %s has an addition %d times that is %s", a.result, a.path, n, other.outcome)
			case n == 0 && other.outcome == applied && other.returned < a.began:
				k.env.violatedLocked(oneOrder, "the result %x of %s lacks an addition that had returned", a.result, a.path)
			}
		}
	}
}

// checkReplacements is the validator of "applied once" and "one order" for the value.
func (k *counting) checkReplacements() {
	k.env.mu.Lock()
	defer k.env.mu.Unlock()
	at := make(map[int64][]int) // the numbers of writes, by what they set
	values := []int64{0}        // before each write
	for i, write := range k.writes[valuePath] {
		v, err := strconv.ParseInt(write.data, 10, 64)
		if err != nil {
			k.env.violatedLocked(appliedOnce, "the value is %q", write.data)
		}
		at[v], values = append(at[v], i), append(values, v)
	}
	for _, s := range k.replacements {
		k.checkReplacement(s, at[s.set], values)
	}
}

func (k *counting) checkReplacement(s *replacement, writes []int, values []int64) {
	if n := len(writes); n > 1 || n == 1 && s.outcome == refused || n == 0 && s.outcome == applied {
		k.env.violatedLocked(appliedOnce, "a change of the value that is %s was applied %d times", s.outcome, n)
		return
	}
	if len(writes) == 0 {
		return
	}
	k.env.counts["values replaced"]++
	i := writes[0]
	when := k.writes[valuePath][i].at
	if when < s.began || s.outcome == applied && when > s.returned {
		k.env.violatedLocked(oneOrder, "the call that set %d lasted from %v to %v, and it was set at %v", s.set, s.began, s.returned, when)
	}
	if s.outcome == applied && s.old >= 0 && values[i] != s.old {
		k.env.violatedLocked(oneOrder, "%d was to be replaced by %d, and %d was", s.old, s.set, values[i])
	}
}

// counterBugs are, for each guarantee of counters and values, what its validator has to find.
func counterBugs() []deliberate {
	return []deliberate{
		{appliedOnce, "an addition of unknown outcome is made again", "2 times", func(b *bug) {
			b.harm, b.adder = dropReplies, func(by adder) adder { return repeating{by} }
		}},
		{oneOrder, "one of the clients counts at another path", "lacks an addition", astray(countersRoot)},
		{oneOrder, "a value is replaced whatever its version is", "was to be replaced by", func(b *bug) {
			b.value = func(v *counter.Value[int64]) value { return careless{v} }
		}},
		{latestValue, "a client is shown every third value", "is not shown the latest value", func(b *bug) {
			b.value = func(v *counter.Value[int64]) value { return &negligent{Value: v} }
		}},
		{latestValue, "a client is shown the first value again and again", "after number", func(b *bug) {
			b.value = func(v *counter.Value[int64]) value { return &nostalgic{v} }
		}},
	}
}

// A repeating counter makes an addition again if its outcome is unknown.
type repeating struct{ adder }

func (n repeating) Add(ctx context.Context, delta int64) (int64, error) {
	v, err := n.adder.Add(ctx, delta)
	if errors.Is(err, framework.ErrUnknownOutcome) {
		return n.adder.Add(ctx, delta)
	}
	return v, err
}

// dropReplies has the server drop the reply to a write of a counter, now and then.
func dropReplies(env *environment) {
	for env.now() < env.plan.horizon {
		env.harm(nil, env.plan.timeout/4)
		env.srv.Rules().Add(fault.Rule{Op: fault.SetData, Path: env.plan.root + countersRoot + "/**", Action: fault.DropReply})
		pass(env.plan.timeout / 4)
	}
}

// A careless value is read and set.
type careless struct{ *counter.Value[int64] }

func (v careless) Update(ctx context.Context, fn func(int64, bool) (int64, error)) (int64, error) {
	old, err := v.Get(ctx)
	if err != nil && !errors.Is(err, framework.ErrNoNode) {
		return 0, err
	}
	set, _ := fn(old, err == nil) // fn is ours
	return set, v.Set(ctx, set)
}

// A negligent value shows every third change.
type negligent struct {
	*counter.Value[int64]
	n int
}

func (v *negligent) All(ctx context.Context) iter.Seq2[int64, error] {
	return func(yield func(int64, error) bool) {
		for value, err := range v.Value.All(ctx) {
			if v.n++; v.n%3 == 0 && !yield(value, err) {
				return
			}
		}
	}
}

// A nostalgic value shows its first value in the place of every third.
type nostalgic struct{ *counter.Value[int64] }

func (v *nostalgic) All(ctx context.Context) iter.Seq2[int64, error] {
	return func(yield func(int64, error) bool) {
		n, first := 0, int64(0)
		for value, err := range v.Value.All(ctx) {
			if n == 1 {
				first = value
			}
			if n++; n > 1 && n%3 == 0 {
				value = first
			}
			if !yield(value, err) {
				return
			}
		}
	}
}
