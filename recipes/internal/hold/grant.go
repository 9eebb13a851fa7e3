package hold

import (
	"context"
	"time"

	"github.com/docent-go/docent/framework"
)

// A Grant is what a hold rests on. Its methods may be called concurrently. Either Release or
// Discard is called, once.
type Grant interface {
	Node() string        // path of the znode, or of the first of several
	Fence() int64        // grows from each holder to the next
	Deadline() time.Time // until when the grant is certainly valid, by the proofs so far

	// Guards returns a check for each znode. A transaction with all of them fails unless the grant is
	// valid.
	Guards() []framework.TxnOp

	// Err returns why the grant is over, or nil while it is valid. It notices a deadline that has
	// just passed.
	Err() error
	// OnLost registers notify and after for the end of the grant. notify is called before another client
	// can be granted the lock, and not if the grant is over already. after is called after notify. If
	// a session ends with many grants, all are notified before the first after is called.
	OnLost(notify func(cause error), after func())

	// Release deletes the grant's znodes and waits for that. If it returns an error, the deletion
	// continues in the background, or the error is a loss.
	Release(ctx context.Context) error
	// Discard deletes the grant's znodes in the background.
	Discard()
}
