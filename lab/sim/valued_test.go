package sim_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/counter"
	"github.com/docent-go/docent/recipes/model"
)

// A replacement is one change of the value. It sets a number that no other replacement sets.
type replacement struct {
	old, set        int64 // old is what Update replaced; 0 if there was no znode, -1 for Set
	began, returned time.Duration
	outcome         outcome
}

// A value is what the clients replace it by.
type value interface {
	Update(ctx context.Context, fn func(old int64, exists bool) (int64, error)) (int64, error)
	Set(ctx context.Context, v int64) error
	All(ctx context.Context) iter.Seq2[int64, error]
}

func (env *environment) value(f *framework.Client) value {
	return env.bug.value(made(counter.NewValue(f, valuePath, model.JSON[int64]())))
}

// replace changes the value, by Update or by Set.
func (k *counting) replace(c *client, f *framework.Client, r *rand.Rand) {
	by := k.env.value(f)
	k.env.mu.Lock()
	s := &replacement{old: -1, set: int64(len(k.replacements) + 1), began: k.env.now()}
	k.replacements = append(k.replacements, s)
	k.env.mu.Unlock()
	limit := upTo(r, k.env.plan.timeout)
	var err error
	if r.IntN(3) == 0 {
		err = c.call("Set", r, limit, func(ctx context.Context) error { return by.Set(ctx, s.set) })
	} else {
		err = c.call("Update", r, limit, func(ctx context.Context) error {
			_, err := by.Update(ctx, func(old int64, _ bool) (int64, error) {
				s.old = old
				return s.set, nil
			})
			return err
		})
	}
	s.outcome, s.returned = outcomeFrom(err), k.env.now()
}

// follow is the validator of "latest value" while the value changes: a client is shown values in the
// order in which they were set.
func (k *counting) follow(ctx context.Context, c *client) {
	for ctx.Err() == nil {
		f := c.usable()
		if f == nil {
			pass(time.Second)
			continue
		}
		last := 0
		for v, err := range k.env.value(f).All(ctx) {
			if err != nil {
				if !errors.Is(err, framework.ErrNoNode) {
					k.env.violated(nothingHidden, "All of %s: %v", c.name, err)
				}
				continue
			}
			last = k.show(c, v, last)
		}
	}
}

// show records that the client is shown the value, and returns how many writes came before.
func (k *counting) show(c *client, v int64, last int) int {
	k.env.mu.Lock()
	defer k.env.mu.Unlock()
	k.env.counts["values shown"]++
	i := slices.IndexFunc(k.writes[valuePath], func(at written) bool { return at.data == strconv.FormatInt(v, 10) })
	if i < last {
		k.env.violatedLocked(latestValue, "%s is shown value %d, which was number %d, after number %d", c.name, v, i, last)
	}
	k.shown[c] = i
	return max(i, last)
}

// checkLatest is the validator of "latest value" once all is well and no client changes it.
func (k *counting) checkLatest() {
	for _, c := range k.env.clients {
		k.env.eventually("values at the end", func() (guarantee, string) {
			k.env.mu.Lock()
			defer k.env.mu.Unlock()
			if behind := len(k.writes[valuePath]) - 1 - k.shown[c]; behind > 0 {
				return latestValue, fmt.Sprintf("%s is not shown the latest value: %d follow", c.name, behind)
			}
			return "", ""
		})
	}
}
