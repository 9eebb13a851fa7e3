package chaos_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/lab/history"
	"github.com/docent-go/docent/recipes/counter"
)

// counterPath is the counter to which all workers add 1. Of another one in each epoch, they also compare and
// set the number.
const counterPath = "/counter"

// addedOne counts additions that succeeded, and addedUnknown those of an unknown outcome.
const (
	addedOne     = "added one to the counter"
	addedUnknown = "added one to the counter, perhaps"
	swapped      = "compared and set a number"
)

// The kinds of reports about counters: an addition, whose Version is the result, and a call of a number,
// which is reported before the call as one of an unknown outcome, and again after it. The Lease is the
// call's name. A call that has done nothing is not done.
const (
	added  history.Kind = "added"
	called history.Kind = "called"
)

// numberOf is a report's call of a number.
type numberOf = history.NumberCall

func (w *worker) adders() []errand {
	return []errand{
		{"adder 1", w.adder, shortRest * 4},
		{"adder 2", w.adder, shortRest * 4},
		{"comparer 1", w.comparer, shortRest * 4},
		{"comparer 2", w.comparer, shortRest * 4},
	}
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
		w.emit(report{Record: history.Record{Kind: added, Call: call, Return: history.Monotonic(), Version: sum}})
		w.did(addedOne)
	case errors.Is(err, framework.ErrUnknownOutcome):
		w.did(addedUnknown)
	case errors.Is(err, counter.ErrCorrupt), errors.Is(err, counter.ErrVersion), errors.Is(err, counter.ErrOverflow):
		w.found("applied once", "an addition: %v", err)
	}
}

// comparer adds to, sets, or compares and sets the number of the present epoch.
func (w *worker) comparer(ctx context.Context, t task) {
	path := w.path("number")
	n, err := counter.New(w.client, path)
	if err != nil {
		panic(err)
	}
	limited, cancel := context.WithTimeout(ctx, treeLimit)
	defer cancel()
	old, err := n.Get(limited)
	if err != nil {
		return
	}
	c := numberOf{Op: history.NumberCompareAndSet, Arg: old, To: old + 1 + t.rand.Int64N(3), Unknown: true}
	switch t.rand.IntN(5) {
	case 0:
		c.Op, c.Arg = history.NumberAdd, 1
	case 1:
		c.Op, c.Arg = history.NumberSet, old
	}
	name := fmt.Sprintf("%s %d", t.owner, t.rand.Uint64())
	report := func() {
		w.emit(report{Record: history.Record{Kind: called, Lease: name, Group: path, Owner: t.owner}, Number: &c})
	}
	c.Call = history.Monotonic()
	report()
	switch c.Op {
	case history.NumberAdd:
		c.Result, err = n.Add(limited, 1)
	case history.NumberSet:
		err = n.Set(limited, c.Arg)
	default:
		c.Swapped, err = n.CompareAndSet(limited, c.Arg, c.To)
	}
	c.Return = history.Monotonic()
	switch {
	case err == nil:
		c.Unknown = false
		if c.Swapped {
			w.did(swapped)
		}
	case !errors.Is(err, framework.ErrUnknownOutcome):
		c.Op, c.Unknown = history.NumberGet, true // it has done nothing
	}
	report()
}

// checkCounter is the validator of "applied once", once all is well: of the counter by the transaction
// logs, and of the numbers by their histories.
func (r *run) checkCounter(o *oracle) {
	counts, _ := r.board.reports()
	r.mu.Lock()
	killed := 0
	for _, f := range r.faults {
		if f.name == killedName {
			killed += 2 // adders, whose additions have no report
		}
	}
	r.mu.Unlock()
	for _, fault := range o.miscounted(r.board.reported(added), counts[addedUnknown]+killed) {
		r.fail(fmt.Errorf("applied once: %s", fault))
	}
	for _, fault := range badNumbers(r.board.reported(called)) {
		r.fail(fmt.Errorf("applied once: %s", fault))
	}
}

// miscounted returns what is wrong with the additions to the counter. The log has one write for each
// number of additions that one client made together. Each addition has a result of its own, which is in
// a write of its client. A later addition has a greater result. The number is not less than there are
// additions that succeeded, and not greater than there may be.
func (o *oracle) miscounted(additions []report, unknown int) (faults []string) {
	writes := o.versions[counterPath]
	sum := int64(0)
	if len(writes) > 0 {
		sum = writes[len(writes)-1].number
	}
	if least, most := int64(len(additions)), int64(len(additions)+unknown); sum < least || sum > most {
		faults = append(faults, fmt.Sprintf("%d additions, and perhaps %d more, made %d", least, unknown, sum))
	}
	slices.SortFunc(additions, func(a, b report) int { return cmp.Compare(a.Version, b.Version) })
	latest := int64(0) // call of the additions with a lower result
	for i, a := range additions {
		if i > 0 && additions[i-1].Version == a.Version {
			faults = append(faults, fmt.Sprintf("%s and %s both got %d", additions[i-1].Client, a.Client, a.Version))
		}
		if a.Return < latest {
			faults = append(faults, fmt.Sprintf("%s got %d, and a later addition less", a.Client, a.Version))
		}
		latest = max(latest, a.Call)
		w, _ := slices.BinarySearchFunc(writes, a.Version, func(v version, n int64) int { return cmp.Compare(v.number, n) })
		if w == len(writes) || !o.isOf(writes[w].writer, a.Client) || writes[w].wall > a.Wall {
			faults = append(faults, fmt.Sprintf("%s got %d, which it did not write", a.Client, a.Version))
		}
	}
	for i, w := range writes {
		if i > 0 && w.number <= writes[i-1].number {
			faults = append(faults, fmt.Sprintf("%d was written after %d", w.number, writes[i-1].number))
		}
	}
	return faults
}

// badNumbers returns the paths whose calls have no order in which a number has such results.
func badNumbers(reports []report) (faults []string) {
	latest := make(map[string]map[string]report) // by path and call
	for _, r := range reports {
		if latest[r.Group] == nil {
			latest[r.Group] = make(map[string]report)
		}
		latest[r.Group][r.Lease] = r
	}
	for path, calls := range latest {
		var all []numberOf
		for _, r := range calls {
			if r.Number.Op != history.NumberGet {
				all = append(all, *r.Number)
			}
		}
		if got := history.CheckNumber(all, checkLimit); got != porcupine.Ok {
			faults = append(faults, fmt.Sprintf("porcupine says %s of the calls of %s: %+v", got, path, all))
		}
	}
	return faults
}

func TestMiscounted(t *testing.T) {
	t.Parallel()
	one := func(call, ret, result int64) report {
		return report{Record: history.Record{Client: "w", Call: call, Return: ret, Version: result}, Wall: 10 * ret}
	}
	for name, c := range map[string]struct {
		additions []report
		writes    []int64
		unknown   int
		faults    int
	}{
		"one after another, and a lost reply": {[]report{one(1, 2, 1), one(3, 4, 3)}, []int64{1, 2, 3}, 1, 0},
		"at the same time":                    {[]report{one(1, 5, 2), one(2, 4, 1)}, []int64{2}, 0, 0},
		"a result twice":                      {[]report{one(1, 3, 1), one(2, 4, 1)}, []int64{1, 2}, 0, 1},
		"an addition that is gone":            {[]report{one(1, 2, 1), one(3, 4, 2)}, []int64{1}, 0, 2},
		"a later one with less":               {[]report{one(1, 2, 2), one(3, 4, 1)}, []int64{2}, 0, 1},
		"an addition that nobody asked for":   {[]report{one(1, 2, 1)}, []int64{1, 2}, 0, 1},
		"a number that falls":                 {[]report{one(1, 2, 1)}, []int64{2, 1}, 0, 1},
	} {
		txns := []txn{}
		for i, n := range c.writes {
			kind := int32(txnSet)
			if i == 0 {
				kind = txnCreate
			}
			txns = append(txns, txn{zxid: int64(i + 1), wall: int64(i + 1), session: 7, kind: kind, path: counterPath, number: n})
		}
		o := &oracle{grow(txns), map[int64]string{7: "w"}}
		if faults := o.miscounted(c.additions, c.unknown); len(faults) != c.faults {
			t.Errorf("%s: %q, want %d faults", name, faults, c.faults)
		}
		o.clients[7] = "another"
		if faults := o.miscounted(c.additions[:1], 10); len(faults) == 0 {
			t.Errorf("%s: an addition that another client wrote is not found", name)
		}
	}
}

func TestBadNumbers(t *testing.T) {
	t.Parallel()
	call := func(name string, c numberOf) report {
		return report{Record: history.Record{Kind: called, Lease: name, Group: "/a"}, Number: &c}
	}
	swap := func(from, to, call, ret int64, ok bool) numberOf {
		return numberOf{Op: history.NumberCompareAndSet, Arg: from, To: to, Swapped: ok, Call: call, Return: ret}
	}
	unknown := swap(0, 5, 1, 0, false)
	unknown.Unknown = true
	for name, c := range map[string]struct {
		reports []report
		faults  int
	}{
		"one swap after the other":            {[]report{call("x", swap(0, 1, 1, 2, true)), call("y", swap(1, 2, 3, 4, true))}, 0},
		"a swap whose process was killed":     {[]report{call("x", unknown), call("y", swap(5, 6, 3, 4, true))}, 0},
		"a swap that the second report tells": {[]report{call("x", unknown), call("x", swap(0, 5, 1, 2, true)), call("y", swap(5, 6, 3, 4, true))}, 0},
		"two swaps of one number":             {[]report{call("x", swap(0, 1, 1, 2, true)), call("y", swap(0, 2, 3, 4, true))}, 1},
		"false, and the number was the same":  {[]report{call("x", swap(0, 1, 1, 2, false))}, 1},
	} {
		if faults := badNumbers(c.reports); len(faults) != c.faults {
			t.Errorf("%s: %q, want %d faults", name, faults, c.faults)
		}
	}
}
