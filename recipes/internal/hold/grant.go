package hold

import (
	"context"
	"time"

	"github.com/docent-go/docent/framework"
)

// A Grant is what a hold rests on. Its methods may be called concurrently; of Release and Discard
// one is called, once.
type Grant interface {
	Node() string           // path of the znode
	Fence() int64           // grows from each holder to the next
	Guard() framework.TxnOp // makes a transaction fail unless the grant is valid
	Deadline() time.Time    // until when the grant certainly is valid, by what is proven now

	// Err returns why the grant is over, nil while it is valid. It notices a deadline that has just
	// passed.
	Err() error
	// OnLost has fn called when the grant is over, before another client can be granted the same.
	// fn is not called if that has happened already.
	OnLost(fn func(cause error))

	// Release deletes what the grant consists of and waits for that. If it returns an error, the
	// deletion goes on in the background, or the error is a loss.
	Release(ctx context.Context) error
	// Discard has what the grant consists of deleted in the background.
	Discard()
}
