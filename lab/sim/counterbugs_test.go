package sim_test

import (
	"context"
	"errors"
	"iter"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/counter"
	"github.com/docent-go/docent/testing/fault"
)

// counterBugs are, for each guarantee of counters and values, what its validator has to find.
func counterBugs() []deliberate {
	return []deliberate{
		{appliedOnce, "an addition of unknown outcome is made again", "2 times", func() bug {
			return bug{harm: dropReplies, adder: func(by adder) adder { return repeating{by} }}
		}},
		{oneOrder, "one of the clients counts at another path", "lacks an addition", astray(countersRoot)},
		{oneOrder, "a value is replaced whatever its version is", "was to be replaced by", func() bug {
			return bug{value: func(v *counter.Value[int64]) value { return careless{v} }}
		}},
		{latestValue, "a client is shown every third value", "is not shown the latest value", func() bug {
			return bug{value: func(v *counter.Value[int64]) value { return &negligent{Value: v} }}
		}},
		{latestValue, "a client is shown the first value again and again", "after number", func() bug {
			return bug{value: func(v *counter.Value[int64]) value { return &nostalgic{v} }}
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
