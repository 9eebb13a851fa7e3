package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/counter"
	"github.com/docent-go/docent/testing/internal/history"
)

// All workers add 1 to one counter.
const counterPath = "/counter"

// addedOne counts additions that succeeded, and addedUnknown those of an unknown outcome.
const (
	addedOne     = "added one to the counter"
	addedUnknown = "added one to the counter, perhaps"
)

// added is the kind of a record of an addition. Its Version is the result.
const added history.Kind = "added"

func (w *worker) adders() []errand {
	return []errand{{"adder 1", w.adder, shortRest * 4}, {"adder 2", w.adder, shortRest * 4}}
}

// adder makes one addition.
func (w *worker) adder(ctx context.Context, _ task) {
	n, err := counter.New(w.client, counterPath)
	if err != nil {
		panic(err)
	}
	limited, cancel := context.WithTimeout(ctx, treeLimit)
	defer cancel()
	call := history.Monotonic()
	sum, err := n.Add(limited, 1)
	switch {
	case err == nil:
		w.emit(history.Record{Kind: added, Client: w.Name, Call: call, Return: history.Monotonic(), Version: sum})
		w.did(addedOne)
	case errors.Is(err, framework.ErrUnknownOutcome):
		w.did(addedUnknown)
	case errors.Is(err, counter.ErrCorrupt), errors.Is(err, counter.ErrVersion), errors.Is(err, counter.ErrOverflow):
		w.found("applied once", "an addition: %v", err)
	}
}

// checkCounter is the validator of "applied once", once all is well. No two additions have one result.
// An addition that began after another one had returned has a greater result. The number is not less
// than there are additions that succeeded. Killed workers may have made further ones.
func (r *run) checkCounter(t *testing.T) {
	t.Helper()
	n := must.Get(counter.New(connect(t, r.ensemble.Addr()), counterPath))(t)
	sum := must.Get(n.Add(t.Context(), 0))(t)
	for _, fault := range miscounted(r.board.reported(added), sum) {
		r.fail(fmt.Errorf("applied once: %s", fault))
	}
}

// miscounted returns what is wrong with the additions of a counter that ended at sum.
func miscounted(additions []history.Record, sum int64) (faults []string) {
	if int64(len(additions)) > sum {
		faults = append(faults, fmt.Sprintf("%d additions made %d", len(additions), sum))
	}
	slices.SortFunc(additions, func(a, b history.Record) int { return int(a.Version - b.Version) })
	latest := int64(0) // call of the additions with a lower result
	for i, a := range additions {
		if i > 0 && additions[i-1].Version == a.Version {
			faults = append(faults, fmt.Sprintf("%s and %s both got %d", additions[i-1].Client, a.Client, a.Version))
		}
		if a.Return < latest {
			faults = append(faults, fmt.Sprintf("%s got %d, and a later addition less", a.Client, a.Version))
		}
		latest = max(latest, a.Call)
	}
	return faults
}

func TestMiscounted(t *testing.T) {
	t.Parallel()
	one := func(call, ret, result int64) history.Record {
		return history.Record{Client: "w", Call: call, Return: ret, Version: result}
	}
	for name, c := range map[string]struct {
		additions []history.Record
		sum       int64
		faults    int
	}{
		"one after another, and a lost reply": {[]history.Record{one(1, 2, 1), one(3, 4, 3)}, 3, 0},
		"at the same time":                    {[]history.Record{one(1, 5, 2), one(2, 4, 1)}, 2, 0},
		"a result twice":                      {[]history.Record{one(1, 3, 1), one(2, 4, 1)}, 2, 1},
		"an addition that is gone":            {[]history.Record{one(1, 2, 1), one(3, 4, 2)}, 1, 1},
		"a later one with less":               {[]history.Record{one(1, 2, 2), one(3, 4, 1)}, 2, 1},
	} {
		if faults := miscounted(c.additions, c.sum); len(faults) != c.faults {
			t.Errorf("%s: %q, want %d faults", name, faults, c.faults)
		}
	}
}
