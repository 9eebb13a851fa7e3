package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/lab/history"
	"github.com/docent-go/docent/recipes/lock"
)

// storeRegister begins the names of the store's registers.
const storeRegister = "store of "

// guarded takes a mutex and writes to two registers while it holds it: one outside ZooKeeper that
// checks fences, and a znode in transactions with the lease's guard.
func (w *worker) guarded(ctx context.Context, t task) {
	at := path.Join("/chaos/guarded", epoch(guardedEpoch))
	m := sound(lock.NewMutex(w.client, at))
	h, err := w.take(lock.ContextWithOwner(ctx, lock.NewOwner(t.owner)), t, w.entry(history.Mutex(), at, t), m)
	if err != nil {
		return
	}
	rounds := 2
	if h.Note() == lingers {
		rounds = 60
	}
	register := "/registers/" + path.Base(at)
	w.readRegister(ctx, h, register)
	// Each round writes without a look at the lease: what a process does that
	// was stopped after its last look. The last round comes after the loss.
	for standing := true; standing && rounds > 0; rounds-- {
		pause(context.Background(), t.between(5*time.Millisecond, 15*time.Millisecond))
		standing = h.Check() == nil
		h.Write(ctx, storeRegister+at, func(context.Context) (int64, history.Outcome) { return writeTo(w.store, at, h.Fence()) })
		w.writeRegister(ctx, h, register)
	}
	release(h)
}

// registerLimit bounds one request about a register.
const registerLimit = 5 * time.Second

// readRegister records which fence is in the register, and makes one if there is none.
func (w *worker) readRegister(ctx context.Context, h *history.Hold, register string) {
	ctx, cancel := context.WithTimeout(ctx, registerLimit)
	defer cancel()
	data, stat, err := w.client.Get(ctx, register)
	if errors.Is(err, framework.ErrNoNode) {
		_, _ = w.client.Create(ctx, register, []byte("0"), framework.WithParents()) // the next write tells
		return
	}
	if err != nil {
		return
	}
	fence, err := strconv.ParseInt(string(data), 10, 64)
	if err != nil {
		panic(fmt.Sprintf("register %s holds %q", register, data))
	}
	h.Read(register, int64(stat.Version), fence)
}

// writeRegister writes the fence, until it is known whether that was possible.
func (w *worker) writeRegister(ctx context.Context, h *history.Hold, register string) {
	for range 3 {
		outcome := h.Write(ctx, register, func(ctx context.Context) (int64, history.Outcome) {
			ctx, cancel := context.WithTimeout(ctx, registerLimit)
			defer cancel()
			results, err := w.client.Txn(ctx, h.Guard(), framework.OpSet(register, []byte(strconv.FormatInt(h.Fence(), 10)), framework.AnyVersion))
			var refusal *framework.TxnError
			switch {
			case err == nil:
				return int64(results[1].Stat.Version), history.Accepted
			case errors.As(err, &refusal) && refusal.Index == 0:
				return 0, history.Refused // the guard's word
			}
			return 0, history.Unknown
		})
		if outcome != history.Unknown {
			return
		}
	}
}
