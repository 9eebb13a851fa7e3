// Package contender has the common parts of recipes whose contenders wait for a lease: the znode's
// data, the grant of a queue, the list of participants, the errors of a wait and the report to
// telemetry.
package contender

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/goid"
	"github.com/docent-go/docent/internal/usercall"
	"github.com/docent-go/docent/internal/zkpath"
	"github.com/docent-go/docent/recipes/internal/args"
	"github.com/docent-go/docent/recipes/internal/hold"
	"github.com/docent-go/docent/recipes/internal/telemetry"
	"github.com/docent-go/docent/recipes/internal/waitqueue"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/locktel"
)

// NodeData returns what a contender's znode holds by the options: the metadata, or what Curator's does.
func NodeData(o *args.Options, metadata func() lease.Metadata) []byte {
	switch {
	case o.NoMetadata && o.Data != nil:
		return o.Data
	case o.NoMetadata:
		return LocalAddress()
	}
	return metadata().Encode()
}

// Metadata returns the metadata of a contender of this process, which starts now. owner and party
// are those of [OwnerOf]. acq is the telemetry of the call, for the traceparent; it may be nil.
func Metadata(owner, party string, data []byte, acq *telemetry.Acquire) lease.Metadata {
	return lease.Metadata{
		Version: lease.MetadataVersion,
		Owner:   owner,
		Host:    hostname(),
		PID:     os.Getpid(),
		Process: hold.Process(),
		Since:   time.Now().UTC().Truncate(time.Millisecond),
		Data:    data,

		Traceparent: acq.Traceparent(),
		Party:       party,
	}
}

var hostname = sync.OnceValue(func() string { //nolint:gochecknoglobals // a process is on one host
	name, _ := os.Hostname() // a host without a name is shown without one
	return name
})

// LocalAddress returns the host's address as text, or nothing if the host's name does not resolve soon:
// Curator's default data. The first call makes the lookup.
var LocalAddress = sync.OnceValue(func() []byte { //nolint:gochecknoglobals // as hostname
	return addressOf(net.DefaultResolver, hostname())
})

// lookupLimit bounds the lookup, because acquires wait for it, whose contexts may be short.
const lookupLimit = 200 * time.Millisecond

func addressOf(r *net.Resolver, host string) []byte {
	ctx, cancel := context.WithTimeout(context.Background(), lookupLimit) //nolint:forbidigo // one lookup is for all callers
	defer cancel()
	addrs, err := r.LookupIP(ctx, "ip", host)
	if err != nil || len(addrs) == 0 {
		return []byte{}
	}
	return []byte(addrs[0].String())
}

// OwnerKey is the key under which a context carries an owner, which has a name and a party.
type OwnerKey struct{}

// NewParty returns a random party.
func NewParty() string { return fmt.Sprintf("%016x", rand.Uint64()) }

// OwnerOf returns the name and the party of the owner that ctx carries, or else the party of the calling
// goroutine, which has no name.
func OwnerOf(ctx context.Context, c *framework.Client) (name, party string) {
	usercall.Require("ctx", ctx != nil)
	if owner, ok := ctx.Value(OwnerKey{}).(interface {
		fmt.Stringer
		Party() string
	}); ok {
		return owner.String(), owner.Party()
	}
	return "", PartyOfGoroutine(c, goid.ID())
}

// A partyPrefix is random, and begins the parties of a client's goroutines.
type partyPrefix string

// PartyOfGoroutine returns the party of a goroutine that uses the client: the client's random prefix
// and the goroutine's number.
func PartyOfGoroutine(c *framework.Client, number uint64) string {
	prefix := framework.Shared(c, func() partyPrefix { return partyPrefix(NewParty()) })
	party := make([]byte, 0, 64) // so that the string is the one allocation
	party = append(append(party, prefix...), '-')
	return string(strconv.AppendUint(party, number, 10))
}

// NewLease returns the first lease of a new hold that is lost by the policy, with the members if it is
// a Multi's. revoked is called as [hold.Options].Revoked is; it may be nil.
func NewLease(
	o hold.Options, policy lease.LossPolicy, revoked func(*lease.Lease), members ...*lease.Lease,
) *lease.Lease {
	o.OnSuspend = policy == lease.OnSuspend
	if revoked != nil {
		o.Revoked = func(oldest *hold.Share) { revoked((*lease.Lease)(oldest)) }
	}
	if o.Shown == "" {
		o.Shown = o.Client.AbsolutePath(o.Path)
	}
	path, shown := o.Path, o.Shown // so that Lost does not keep all of o
	o.Lost = func(cause error) error { return &lease.LostError{Path: path, AbsolutePath: shown, Cause: cause} }
	var shares []*hold.Share
	for _, member := range members {
		shares = append(shares, ShareOf(member))
	}
	return (*lease.Lease)(hold.New(o, shares...))
}

// ShareOf returns the lease's share in its hold.
func ShareOf(l *lease.Lease) *hold.Share { return (*hold.Share)(l) }

// A Grant is the grant of a recipe whose contenders queue: the first znode of the queue.
type Grant struct {
	*waitqueue.Grant
	Of     string      // path of the recipe
	Recipe args.Recipe // begins the text of the errors of releases
}

// Release deletes the znode.
func (g *Grant) Release(ctx context.Context) error {
	return g.Released(g.Client.Delete(ctx, g.Path, framework.Guaranteed()))
}

// Released ends the grant. err is the result of the znode's deletion.
func (g *Grant) Released(err error) error {
	return g.Recipe.Error(g.Client, "release", g.Of, ReleaseError(g.Client, g.Of, g.Session, err))
}

// Discard deletes the znode in the background.
func (g *Grant) Discard() {
	g.Grant.Discard()
	g.Session.Release()
}

// ReleaseError ends the session's hold and returns the error of a release whose deletion returned
// err. If the session ended meanwhile by the client's clock, or with the client, the lease was valid
// when the release began and the znode ends with the session: that is no error. But if the znode or
// the session was gone at the ensemble, another client may have held the lock before the release. If
// the znode is gone and a reply was lost, the release itself deleted it.
func ReleaseError(c *framework.Client, path string, session *framework.SessionHold, err error) error {
	defer session.Release()
	switch {
	case errors.Is(err, framework.ErrNoNode) && errors.Is(err, framework.ErrUnknownOutcome):
		return nil
	case errors.Is(err, framework.ErrNoNode):
		return &lease.LostError{Path: path, AbsolutePath: c.AbsolutePath(path), Cause: lease.ErrNodeDeleted}
	case errors.Is(err, framework.ErrSessionEnded), errors.Is(err, framework.ErrClosed):
		if ended := session.Err(); errors.Is(ended, framework.ErrSessionExpired) {
			return &lease.LostError{Path: path, AbsolutePath: c.AbsolutePath(path), Cause: ended}
		}
		return nil
	}
	return err
}

// errPanicked ends an acquire that did not return, because a user's function panicked or ended the
// goroutine.
var errPanicked = errors.New("a function of the user's panicked")

// Acquire calls get and reports that as an acquire. With try it bounds the call, as [Try] does.
func Acquire(
	ctx context.Context, tel telemetry.Lock, c *framework.Client, try bool,
	get func(context.Context, *telemetry.Acquire) (*lease.Lease, error),
) (*lease.Lease, error) {
	ctx, acq := tel.Begin(ctx)
	return Observe(ctx, acq, func() (*lease.Lease, error) {
		if !try {
			return get(ctx, acq)
		}
		return Try(ctx, c, func(ctx context.Context) (*lease.Lease, error) { return get(ctx, acq) })
	})
}

// Observe calls get, the rest of an acquire, and reports its end.
func Observe(
	ctx context.Context, acq *telemetry.Acquire, get func() (*lease.Lease, error),
) (l *lease.Lease, err error) {
	if acq == nil {
		return get()
	}
	err = errPanicked // if get does not return
	defer func() { EndAcquire(ctx, acq, l, err) }()
	return get()
}

// RunAttempt calls run, which returns nil when the attempt has its grant, and returns what granted makes of
// it. If ctx ends at the same moment as the grant comes, ctx wins. Without a grant, and also if a user's
// function panics or ends the goroutine, RunAttempt calls fail. fail withdraws the attempt and returns the
// caller's error for err, which is nil in a panic.
func RunAttempt[T any](
	ctx context.Context, run func() error, granted func() T, fail func(err error) error,
) (made T, err error) {
	done := false
	defer func() {
		if !done {
			err = fail(err)
		}
	}()
	if err = cmp.Or(run(), ctx.Err()); err == nil {
		made = granted()
		done = true
	}
	return made, err
}

// EndAcquire reports the end of an acquire, with the lease or with err.
func EndAcquire(ctx context.Context, acq *telemetry.Acquire, l *lease.Lease, err error) {
	var fence int64
	if l != nil {
		fence = l.Fence()
	}
	var wait *lease.WaitError
	if errors.As(err, &wait) {
		err = wait.Err // without the blocking contender, for which a span has links
	}
	acq.End(ctx, fence, err)
}

// Try calls try, an attempt that waits for no other contender, with a context that ends after the
// client's connect timeout at the latest. That is how long one attempt of an operation waits for a
// connection. It is enough for a change to another server, and an outage must not make callers wait
// that chose not to. If the limit ends the attempt, the error wraps [framework.ErrNotConnected].
func Try(
	ctx context.Context, c *framework.Client, try func(context.Context) (*lease.Lease, error),
) (*lease.Lease, error) {
	limit := c.ConnectTimeout()
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	l, err := try(limited)
	switch {
	case err == nil && ctx.Err() != nil: // both at once, and limited was a moment late
		ShareOf(l).Discard()
		return nil, ctx.Err()
	case err == nil, ctx.Err() != nil, limited.Err() == nil, !errors.Is(err, limited.Err()):
		return l, err
	}
	return nil, unanswered(limit, err)
}

// unanswered returns the error of a try that its limit has ended with err. It does not wrap err,
// because the caller's context has not ended.
func unanswered(limit time.Duration, err error) error {
	ended := fmt.Errorf("%w: no answer within %v: %v", framework.ErrNotConnected, limit, err) //nolint:errorlint // not wrapped
	if errors.Is(err, lease.ErrHeld) {                                                        // and a znode of the attempt is deleted in the background
		return fmt.Errorf("%w: %w", lease.ErrHeld, ended)
	}
	return ended
}

// WaitError returns the [lease.WaitError] of a wait that ctx ended, and err itself if it ended
// otherwise.
func WaitError(
	ctx context.Context, c *framework.Client, path string, ahead int, by *lease.Participant, err error,
) error {
	if ctx.Err() == nil || !errors.Is(err, ctx.Err()) {
		return err
	}
	return &lease.WaitError{Path: path, AbsolutePath: c.AbsolutePath(path), Ahead: ahead, BlockedBy: by, Err: args.Ended(ctx, c)}
}

// stuck is after how long a wait is logged as a warning, with a hint.
const stuck = time.Minute

// AskQueue is the hint for a wait for a contender of a queue. The recipe's path follows.
const AskQueue = "see who holds it: docent queue --blocked-by "

// LogLongWait returns the report of a [waitqueue.LongWait], which logs that a call of c waits for what,
// as in "the lock", at path. It returns nil if c logs no such lines. hint may be empty.
func LogLongWait(c *framework.Client, what, path, hint string) func(time.Duration, waitqueue.Blocker) {
	log := c.Logger().Named("lock")
	if !log.Core().Enabled(zapcore.InfoLevel) {
		return nil
	}
	at := c.AbsolutePath(path)
	return func(waited time.Duration, by waitqueue.Blocker) {
		message, level := "still waiting for "+what, zapcore.InfoLevel
		fields := []zap.Field{zap.String(locktel.AttrPath, at)}
		if by.Ahead >= 0 {
			fields = append(fields, zap.Int(locktel.AttrQueuePosition, by.Ahead))
		}
		if by.Path != "" {
			fields = append(fields, zap.String("contender", c.AbsolutePath(by.Path)))
		}
		m, known := lease.DecodeMetadata(by.Data)
		if known {
			fields = append(fields, zap.String("process", fmt.Sprintf("%d on %s", m.PID, m.Host)), zap.Time("since", m.Since))
		}
		if known && m.Owner != "" {
			fields = append(fields, zap.String("owner", m.Owner))
		}
		switch {
		case by.Path != "" && by.Stat.EphemeralOwner == c.Session().ID:
			message += ", which another owner of this client has or waits for"
		case known && m.IsOwn():
			message += ", which another session of this process has or waits for"
		}
		if waited >= stuck {
			level = zapcore.WarnLevel
			if hint != "" {
				fields = append(fields, zap.String("hint", hint+at))
			}
		}
		log.Log(level, message, fields...)
	}
}

// HeldError returns [lease.ErrHeld] for a queue's refusal, with the errors joined to it.
func HeldError(err error) error {
	if err == waitqueue.ErrBusy { //nolint:errorlint // alone: there is nothing to add
		return lease.ErrHeld
	}
	if errors.Is(err, waitqueue.ErrBusy) {
		return fmt.Errorf("%w: %w", lease.ErrHeld, err)
	}
	return err
}

// WaitErrorOf returns the [lease.WaitError] of an attempt that ctx ended, in the queue of the
// recipe at path. It returns nil for nil, and err itself if the attempt ended otherwise.
func WaitErrorOf(
	ctx context.Context, q *waitqueue.Queue, path string, a *waitqueue.Attempt, err error,
) error {
	if err == nil {
		return nil
	}
	ahead, node, holds, data, st := a.BlockedBy()
	if ahead < 0 {
		return WaitError(ctx, q.Client, path, -1, nil, err)
	}
	by := OfNode(zkpath.Join(q.Dir, node.Name), node, data, st)
	by.Holder = holds
	return WaitError(ctx, q.Client, path, ahead, &by, err)
}
