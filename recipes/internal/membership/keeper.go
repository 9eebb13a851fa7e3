// Package membership has what recipes of a client's own znodes share: a [Keeper] keeps a znode, a [Past]
// and [Names] know the znodes that earlier calls and sessions of the client may have left or may yet
// create, a [Set] closes what is open, and [Changes] waits until members settle.
package membership

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/errtype"
	"github.com/docent-go/docent/internal/pace"
)

// ErrTaken is the obstacle of a Keeper while a znode that is not its own is at the path.
var ErrTaken = errtype.New("another client's znode is at the path", "taken")

// A Content is data for the znode, numbered from 1.
type Content struct {
	Data   []byte
	Number int64
}

// Options say which znode a Keeper keeps, and whom it reports to. They are immutable. The functions are
// called by the goroutine of Run.
type Options struct {
	Client *framework.Client
	Path   string
	// Create returns how to create the znode, with more options.
	Create     func(more ...framework.CreateOption) []framework.CreateOption
	ACL        []framework.CreateOption
	Sequential bool
	Lasting    bool // the znode belongs to no session
	// Adopt reports whether a lasting znode with the data is the Keeper's; nil for every one.
	Adopt func(ctx context.Context, data []byte) (bool, error)
	TTL   time.Duration // of the child "touch"; 0 for no child

	Poke        <-chan struct{}       // there is something to do
	Want        func() Content        // the latest content
	Created     func(context.Context) // the znode was created
	Gone        func(error)           // the znode does not exist, or may not
	Overwritten func()                // another client has written to the znode

	// Attempted reports the result of an attempt to have the znode, at path, with the content.
	Attempted func(want Content, path string, err error)
}

// A Keeper keeps one znode. It belongs to the goroutine of Run, and then to that of End.
type Keeper struct {
	opts    Options
	session int64             // the client's; an ephemeral znode is to belong to it
	client  *framework.Client // bound to the session
	past    Past              // znodes that may have been created at the path
	unsure  succession        // the latest one of unknown outcome
	ending  []<-chan struct{} // each is closed when the client has ended a deletion in the background

	path    string           // of the znode, or where it is to be created
	znode   framework.Stat   // as it was last seen; its Czxid is 0 if the Keeper has no znode
	written int64            // number of the Content that the znode got
	adopted bool             // it is another client's work, and the Keeper has not written to it yet
	sent    [][]byte         // data that a lasting znode may have by requests of unknown outcome
	watch   *framework.Watch // of the znode, or of what is in its way; nil for none
	touched time.Time        // when the child "touch" was last written

	failures int // attempts in a row
}

// New returns a Keeper, which makes no request before Run.
func New(opts Options) *Keeper {
	return &Keeper{opts: opts, path: opts.Path}
}

// Run keeps the znode until ctx ends or the client is closed.
func (k *Keeper) Run(ctx context.Context) {
	for {
		want := k.opts.Want()
		err := k.reconcile(ctx, want)
		if ctx.Err() != nil || errors.Is(err, framework.ErrClosed) {
			k.opts.Gone(framework.ErrClosed)
			return
		}
		k.opts.Attempted(want, k.path, err)
		k.await(ctx, err)
	}
}

// reconcile returns nil once the znode exists with the content and is watched.
func (k *Keeper) reconcile(ctx context.Context, want Content) error {
	for rounds := pace.Rounds(); ; {
		if err := rounds.Wait(ctx, 1); err != nil {
			return err
		}
		if err := k.bind(ctx); err != nil {
			return err
		}
		var err error
		switch {
		case k.znode.Czxid == 0:
			err = k.create(ctx, want)
		case k.watch == nil || !k.watch.Valid():
			err = k.inspect(ctx, want)
		case k.written != want.Number:
			err = k.write(ctx, want)
		case k.opts.TTL > 0 && time.Since(k.touched) >= k.opts.TTL/2:
			err = k.touch(ctx)
		default:
			return nil
		}
		if err != nil && !errors.Is(err, framework.ErrSessionEnded) {
			return err
		}
	}
}

// await waits until there is something to do after an attempt that ended with err.
func (k *Keeper) await(ctx context.Context, err error) {
	if errors.Is(err, ErrTaken) {
		k.watch.Recheck()
	}
	var fired <-chan struct{}
	if k.watch != nil && (err == nil || k.watch.Event() == 0) {
		fired = k.watch.Fired()
	}
	var due <-chan time.Time
	if delay := k.delay(err); delay > 0 {
		due = time.After(delay)
	}
	select {
	case <-fired:
	case <-due:
	case <-k.opts.Poke:
	case <-ctx.Done():
	}
}

// The pause after an attempt that failed doubles with each one, and is partly random.
const (
	firstPause = 100 * time.Millisecond
	maxPause   = 10 * time.Second
)

// delay returns after how long the keeper makes an attempt if it learns of nothing; 0 for never.
func (k *Keeper) delay(err error) time.Duration {
	if err == nil {
		k.failures = 0
	}
	switch {
	case err == nil && k.opts.TTL > 0:
		return max(1, time.Until(k.touched.Add(k.opts.TTL/2)))
	case err == nil, errors.Is(err, ErrTaken) && k.watch.Event() == 0:
		return 0
	}
	pause := pace.Doubled(firstPause, maxPause, k.failures)
	k.failures++
	return pause/2 + rand.N(pause/2)
}
