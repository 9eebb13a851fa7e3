package history_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/lab/history"
	"github.com/docent-go/docent/recipes/counter"
	"github.com/docent-go/docent/recipes/model"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
)

// A number is a counter, or a value that holds a number.
type number interface {
	Add(ctx context.Context, delta int64) (int64, error)
	Set(ctx context.Context, v int64) error
}

// A valueNumber is a value that holds a number.
type valueNumber struct{ *counter.Value[int64] }

func (n valueNumber) Add(ctx context.Context, delta int64) (int64, error) {
	return n.Update(ctx, func(old int64, _ bool) (int64, error) { return old + delta, nil })
}

// TestNumbersAreLinearizable has 12 goroutines of four clients under faults. porcupine searches an
// order of all calls. Calls of unknown outcome are concurrent with all later ones, so with 16 goroutines the
// search did not end within a minute in one run of many.
func TestNumbersAreLinearizable(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t testing.TB, c *framework.Client, path string) number{
		"counter": func(t testing.TB, c *framework.Client, path string) number {
			t.Helper()
			return must.Get(counter.New(c, path))(t)
		},
		"value": func(t testing.TB, c *framework.Client, path string) number {
			t.Helper()
			return valueNumber{must.Get(counter.NewValue(c, path, model.JSON[int64]()))(t)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testLinearizable(t, open)
		})
	}
}

func testLinearizable(t *testing.T, open func(t testing.TB, c *framework.Client, path string) number) {
	t.Helper()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		const clients, goroutines, rounds = 4, 3, 4
		path := fmt.Sprintf("/counter/linearizable-%016x", rand.Uint64())
		var mu sync.Mutex
		var calls []history.NumberCall
		var wg sync.WaitGroup
		began := time.Now()
		clock := func() int64 { return int64(time.Since(began)) }
		routes := make([]*zkenv.Route, clients)
		for i := range clients {
			routes[i] = env.Route(t)
			n := open(t, routes[i].Client(t), path)
			for j := range goroutines {
				r := rand.New(rand.NewPCG(uint64(i), uint64(j)))
				wg.Go(func() {
					seen := int64(0)
					for range rounds {
						// Numbers that are rarely equal leave porcupine few orders to try.
						c := history.NumberCall{Client: i*goroutines + j, Arg: r.Int64N(1 << 40), Call: clock()}
						var err error
						swapper, swaps := n.(*counter.Counter)
						switch which := r.IntN(4); {
						case which == 0:
							c.Op = history.NumberSet
							err = n.Set(t.Context(), c.Arg)
						case which == 1 && swaps:
							c.Op, c.To, c.Arg = history.NumberCompareAndSet, c.Arg, seen
							c.Swapped, err = swapper.CompareAndSet(t.Context(), c.Arg, c.To)
						default:
							c.Op = history.NumberAdd
							c.Result, err = n.Add(t.Context(), c.Arg)
							seen = c.Result
						}
						c.Return = clock()
						if c.Unknown = errors.Is(err, framework.ErrUnknownOutcome); err != nil && !c.Unknown {
							t.Errorf("%s: %v", c.Op, err)
							return
						}
						mu.Lock()
						calls = append(calls, c)
						mu.Unlock()
					}
				})
			}
		}
		for i, route := range routes {
			if i < 2 {
				route.Rules().Add(fault.Rule{Op: fault.SetData, Path: path, Action: fault.DropReply})
			} else {
				route.Cut()
			}
			env.Quiesce()
		}
		wg.Wait()
		var err error
		last := history.NumberCall{Client: -1, Op: history.NumberAdd, Call: clock()}
		if last.Result, err = open(t, env.Client(t), path).Add(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		last.Return = clock()
		if got := history.CheckNumber(append(calls, last), time.Minute); got != porcupine.Ok {
			t.Errorf("%d calls: %v, want an order", len(calls), got)
		}
	}, zkenv.Only("the replies of real servers are not slower", zkenv.Embedded, zkenv.EmbeddedEnsemble, zkenv.Standalone))
}
