package framework

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/framework/internal/otelzk"
	"github.com/docent-go/docent/framework/internal/requests"
	"github.com/docent-go/docent/framework/internal/session"
	"github.com/docent-go/docent/framework/internal/zkerr"
	"github.com/docent-go/docent/internal/cause"
	"github.com/docent-go/docent/internal/pace"
	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/internal/usercall"
	"github.com/docent-go/docent/retry"
)

// A request is one operation with all its attempts.
type request struct {
	op, path string // for observers
	session  int64  // the session that it is bound to, 0 for any

	once      bool        // with an unknown outcome it is not repeated: a second request could have a second effect
	single    bool        // one attempt only: the caller repeats it
	patient   func() bool // reports that neither the policy nor a reply must end the call; may be nil
	batch     int         // operations of a transaction
	reads     bool        // a read-only server suffices
	tolerates []error     // errors that are no failure for the caller
}

// failed reports whether err is a failure for the caller.
func (rq *request) failed(err error) bool {
	return err != nil && !zkerr.IsAny(err, rq.tolerates...)
}

// do makes attempts by the client's policy until an attempt succeeds, fails for good, or ctx ends.
// It is the only layer that retries. A request that was never sent is always tried again. A request
// with an unknown outcome is tried again only if that is safe.
//
// The other loops repeat no failed request. attemptOn, CreateOrSet and DeleteTree go on after a reply that says what
// to do first, which no policy may end. Guaranteed deletions and tree watches have no caller, whose context and policy
// would bound them: each of their attempts is a do, or the session's, and a connection or a time begins the next one.
func do[T any](ctx context.Context, c *core, rq request, attempt func(context.Context, *session.Session) (T, error)) (T, error) {
	usercall.Require("ctx", ctx != nil)
	o := c.telemetry.Observe(ctx, otelzk.Operation{Name: rq.op, Path: rq.path, Batch: rq.batch})
	if o == nil {
		return try(ctx, c, &rq, nil, attempt)
	}
	err := ErrUnknownOutcome // until there is a reply: a function of the user may panic
	defer func() { o.End(err, rq.failed(err)) }()
	v, err := try(o.Context(), c, &rq, o, func(ctx context.Context, s *session.Session) (T, error) {
		o.Session = s
		return attempt(ctx, s)
	})
	return v, err
}

// try is do without telemetry.
func try[T any](ctx context.Context, c *core, rq *request, o *otelzk.Observation, attempt func(context.Context, *session.Session) (T, error)) (T, error) {
	bound, once, reads, so := rq.session, rq.once, rq.reads, soFar{patient: rq.patient} // all that an attempt keeps of rq
	policy := c.cfg.retry
	if rq.single {
		policy = retry.Never()
	}
	var v, zero T
	var err error
	for {
		err = retry.Do(ctx, policy, func(ctx context.Context) error {
			breaks := c.breaks.Load() // before there is a session: its connection may end at once
			s, err := c.sessionFor(ctx, bound, reads)
			if err != nil {
				so.passes = Retryable(err)
				return classify(once, err, noConnection)
			}
			if v, err = attemptOn(ctx, s, attempt); err == nil {
				return nil
			}
			so.unknown, so.passes = so.unknown || errors.Is(err, ErrUnknownOutcome), passes(err)
			if so.goesOn() {
				return attemptError{err, breaks} // a reply does not end the call, and the policy says how soon the next attempt is
			}
			return classify(once, err, breaks)
		}, c.retryOptions(o)...)
		if err == nil {
			return v, nil
		}
		if ctx.Err() != nil || !so.goesOn() {
			break
		}
		if ended := c.endure(ctx, err, o); ended != nil {
			err = ended
			break
		}
	}
	err = cause.Without(err)
	if so.unknown && !reads && unanswered(err) {
		err = fmt.Errorf("%w; an earlier attempt: %w", err, ErrUnknownOutcome)
	}
	return zero, err
}

// soFar is what the attempts of a call have shown.
type soFar struct {
	patient func() bool // see request
	unknown bool        // an attempt had an unknown outcome
	passes  bool        // a later one may not meet the latest error again
}

// goesOn reports whether neither the policy nor a reply ends the call after its latest error.
func (so *soFar) goesOn() bool { return so.passes && so.patient != nil && so.patient() }

// patientPause is the pause of a patient call when its policy has stopped it. A reconnection ends it.
const patientPause = time.Second

// endure returns nil after the pause of a patient call that was stopped by err. If ctx ends first, it returns ctx's error
// with err.
func (c *core) endure(ctx context.Context, err error, o *otelzk.Observation) error {
	failure := retry.Failure{Err: err, Wait: patientPause}
	if o != nil {
		o.Retrying(failure)
	}
	pause := time.NewTimer(patientPause)
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-c.nextConnection(failure):
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	return nil
}

// passes reports whether a later attempt may not meet err again: no ACL and no missing operation refused the
// attempt, and neither the session nor the client has ended.
func passes(err error) bool {
	return !zkerr.IsAny(err, ErrNoAuth, ErrUnsupported, ErrSessionEnded, ErrClosed)
}

// errRestart is returned by an attempt that a reply stopped, and that has removed the reason: it created a missing
// parent, for example, or deleted a znode. The attempt then begins again.
var errRestart = errors.New("to be sent again")

// restartUnless returns err, or errRestart if what was in an attempt's way is gone.
func restartUnless(err error) error {
	if err == nil {
		return errRestart
	}
	return err
}

// unlessGone returns the error of a deletion, unless the znode is gone or is not the meant one any more.
func unlessGone(err error) error {
	if errors.Is(err, ErrNoNode) || errors.Is(err, errEpochMoved) {
		return nil
	}
	return err
}

// attemptOn makes an attempt, in as many rounds as it takes. The client leaves no server by its own decision
// before the attempt is over.
func attemptOn[T any](ctx context.Context, s *session.Session, attempt func(context.Context, *session.Session) (T, error)) (T, error) {
	if !s.Enter() {
		var zero T
		return zero, ErrNotConnected
	}
	defer s.Leave()
	for rounds := pace.Rounds(); ; {
		v, err := attempt(ctx, s)
		if err != errRestart { //nolint:errorlint // this very error
			return v, err
		}
		if err := rounds.Wait(ctx, 1); err != nil {
			return v, err
		}
	}
}

// unanswered reports whether no server has replied to the attempt that failed with err. If an earlier
// attempt had an unknown outcome, the call then has it too.
func unanswered(err error) bool {
	return !errors.Is(err, ErrUnknownOutcome) &&
		zkerr.IsAny(err, ErrNotConnected, ErrReadOnly, ErrAuthFailed, ErrSessionEnded, ErrClosed, context.Canceled, context.DeadlineExceeded)
}

// classify marks the errors after which no attempt follows, and notes at the others how often the connection
// had broken before the attempt. If ctx has ended, the retry loop checks that first.
func classify(once bool, err error, breaks int64) error {
	if !Retryable(err) || once && errors.Is(err, ErrUnknownOutcome) {
		return retry.Permanent(err)
	}
	return attemptError{err, breaks}
}

// sessionFor returns a connected session: the session with the id, or any for 0. It may be a
// read-only session if reads is true.
func (c *core) sessionFor(ctx context.Context, id int64, reads bool) (*session.Session, error) {
	if id == 0 {
		return c.awaitServer(ctx, reads)
	}
	s := c.current()
	if s == nil || s.ID() != id {
		return nil, fmt.Errorf("%w: %#x is no longer the client's session", ErrSessionEnded, id)
	}
	return s, c.awaitConnection(ctx, s)
}

// Retryable reports whether err is of a temporary condition: the request was never sent
// ([ErrNotConnected]) or its outcome is unknown ([ErrUnknownOutcome]). In the second case it may
// have had its effect, so repeating it is safe only if a second effect does no harm. These errors
// are not retryable: an error of a context, the end of a session or a client, and [ErrTooLarge]. An
// error that the operation's own first attempt may have caused is not retryable either.
func Retryable(err error) bool { return zkerr.Retryable(err) }

// retryOptions end an operation's pauses as soon as there is a connection again, and report its
// retries.
func (c *core) retryOptions(o *otelzk.Observation) []retry.DoOption {
	if o == nil {
		return c.baseRetry
	}
	return append(slices.Clip(c.baseRetry), retry.OnRetry(o.Retrying))
}

// nextConnection is closed at the next transition to Connected, and to Closed. A retried operation
// failed for lack of a connection, so once there is one, a longer pause has no use. There may be one
// already: an attempt may fail before its connection's end is known, and the next connection may be there
// when its failure is.
func (c *core) nextConnection(f retry.Failure) <-chan struct{} {
	var failed attemptError
	attempted := errors.As(f.Err, &failed)
	c.mu.Lock()
	defer c.mu.Unlock()
	if attempted && c.state == Connected && c.breaks.Load() != failed.breaks {
		already := make(chan struct{})
		close(already)
		return already
	}
	return c.up
}

// An attemptError is the failure of an attempt.
type attemptError struct {
	error

	breaks int64 // of the connection before the attempt; or noConnection
}

// noConnection is the breaks of an attempt that has had no connection: any is the next one.
const noConnection = -1

// Unwrap returns the failure.
func (e attemptError) Unwrap() error { return e.error }

// earlierAttempts remember, over the attempts of one call, whether one of them had an unknown outcome. A
// write is repeated only once it is certain that the earlier attempt had no effect and will have
// none. Otherwise the repetition could be a second effect, or undo a write of another client.
//
// The certainty comes from the znode's Stat, which is read after a commit in the session of the
// earlier attempt. The ensemble serves a session's requests in order, also across connections, so
// the earlier attempt is over by then. A sync would not do: a leader that was deposed, and does not know
// it, replies to that from its memory. If it had an effect, that effect has a higher transaction id
// than all that the session knew before the attempt. Both hold in one session alone: in a later one
// the earlier request may still be on its way, and transaction ids may have begun again.
type earlierAttempts struct {
	unknown bool  // an attempt has an unknown outcome
	session int64 // of the latest attempt
	before  int64 // the transaction id that its session knew before it

	chooses  bool  // the deletion outlives sessions, so it means the znode that it finds first
	czxid    int64 // of that znode; 0 if it was not read yet
	confirms bool  // no caller waits for the deletion, so it always reads first which znode it would delete
}

// Why it is not certain what an earlier attempt did. Each wraps [zkerr.ErrEarlierAttempt].
var (
	errCreatedSince = fmt.Errorf("%w, and the znode may have been created since", zkerr.ErrEarlierAttempt)
	errWrittenSince = fmt.Errorf("%w, and the znode may have been written since", zkerr.ErrEarlierAttempt)
	errDeletedSince = fmt.Errorf("%w, and the znode may have been created and deleted since", zkerr.ErrEarlierAttempt)
	errOtherSession = fmt.Errorf("%w, and its session has ended", zkerr.ErrEarlierAttempt)
	errZxidFell     = fmt.Errorf("%w, and the ensemble's transaction ids have fallen", zkerr.ErrEarlierAttempt)
)

// maybeEarlier returns err for a write that an earlier attempt of the same call may have done.
func maybeEarlier(err error) error {
	return fmt.Errorf("%w, maybe by an earlier attempt of this call (%w)", err, zkerr.ErrEarlierAttempt)
}

// note records the error of an attempt, and returns it.
func (d *earlierAttempts) note(err error) error {
	d.unknown = d.unknown || errors.Is(err, ErrUnknownOutcome)
	return err
}

// checkNoEffect is called before each attempt to write the znode at the path. It returns nil if the attempt
// is the first, or if the earlier attempt certainly had no effect. shows returns why the znode that is found, or
// that there is none, does not show that.
func (d *earlierAttempts) checkNoEffect(
	ctx context.Context, s *session.Session, path string, shows func(found proto.Node) error,
) error {
	if d.unknown {
		found, err := d.read(ctx, s, path)
		if err == nil {
			err = shows(found)
		}
		if err != nil {
			return err
		}
		d.unknown = false
	}
	return d.begin(ctx, s)
}

// isFormer returns nil if the znode is the one that was there before the earlier attempt.
func (d *earlierAttempts) isFormer(found proto.Node) error {
	switch {
	case !found.Exists:
		return maybeEarlier(ErrNoNode)
	case found.Stat.Czxid > d.before:
		return errCreatedSince
	}
	return nil
}

// begin records what the session knows before an attempt. If no server has replied in this session,
// begin reads first: one round trip, once in a session, however many begin at once.
func (d *earlierAttempts) begin(ctx context.Context, s *session.Session) error {
	if err := s.AwaitReply(ctx); err != nil {
		return unwritten(ctx, err)
	}
	d.session, d.before = s.ID(), s.Zxid()
	return nil
}

// unwritten returns the error of a read that precedes a write. Nothing was written, so there is no
// unknown outcome.
func unwritten(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, ErrClosed):
		return ErrClosed
	case errors.Is(err, ErrUnknownOutcome):
		return fmt.Errorf("%w: the connection broke before the write", ErrNotConnected)
	}
	return err
}

// read reads the znode at the path once the earlier attempt is over. It returns an error if the
// znode's Stat could not be compared with d.before.
func (d *earlierAttempts) read(ctx context.Context, s *session.Session, path string) (proto.Node, error) {
	if s.ID() != d.session {
		return proto.Node{}, errOtherSession
	}
	err := session.Effect(ctx, s, requests.Prove())
	var found proto.Node
	if err == nil {
		found, err = readStat(ctx, s, path)
	}
	switch {
	case err != nil:
		return proto.Node{}, refused(err)
	case s.Zxid() < d.before:
		return proto.Node{}, errZxidFell
	}
	return found, nil
}

// readSynced reads a Stat after a sync, because the server may lag behind the server of an earlier
// attempt. The znode need not exist.
func readSynced(ctx context.Context, s *session.Session, path string) (proto.Node, error) {
	err := session.Effect(ctx, s, requests.Sync(path))
	if err != nil {
		return proto.Node{}, err
	}
	return readStat(ctx, s, path)
}

// readStat reads a Stat. The znode need not exist.
func readStat(ctx context.Context, s *session.Session, path string) (proto.Node, error) {
	found, err := session.Call(ctx, s, requests.Exists(path))
	if errors.Is(err, ErrNoNode) {
		return proto.Node{}, nil
	}
	return found, err
}

// refused returns err. If a server has replied with err, no attempt follows, so the error also says
// that the outcome of the earlier attempt is unknown.
func refused(err error) error {
	if err == nil || Retryable(err) || unanswered(err) || errors.Is(err, ErrUnknownOutcome) {
		return err
	}
	return fmt.Errorf("%w; %w", err, zkerr.ErrEarlierAttempt)
}

// Bytes of a request in ZooKeeper's encoding, without paths, data and ACLs.
const (
	headSize    = proto.RequestHeadSize                 // number and opcode of a request
	readSize    = headSize + proto.LengthSize + 1       // path, watch flag
	deleteSize  = headSize + proto.LengthSize + 4       // path, version
	setSize     = headSize + 2*proto.LengthSize + 4     // path, data, version
	createSize  = headSize + 3*proto.LengthSize + 4 + 8 // path, data, ACL, flags, TTL
	authSize    = headSize + 4 + 2*proto.LengthSize     // type, scheme, credential
	multiOpSize = proto.OpHeadSize                      // per operation, and at the end
)

// checkSize returns an error if a request of that many bytes must not be sent. The server would
// close the connection, with all requests that are in flight on it.
func (c *core) checkSize(bytes int) error {
	if bytes > c.cfg.maxRequest {
		return fmt.Errorf("%w: a request of %d bytes, must be at most %d", ErrTooLarge, bytes, c.cfg.maxRequest)
	}
	return nil
}

func aclSize(acl []acl.Entry) int {
	size := 0
	for _, entry := range acl {
		size += 4 + 2*proto.LengthSize + len(entry.Scheme) + len(entry.ID)
	}
	return size
}

// applyAll calls apply with each option, and returns the faults of options that are nil.
func applyAll[O any](opts []O, apply func(O)) (faults error) {
	for i, opt := range opts {
		if any(opt) == nil {
			faults = errors.Join(faults, fmt.Errorf("option %d: must not be nil", i))
			continue
		}
		apply(opt)
	}
	return faults
}

// Idempotent makes an operation succeed if it finds its effect already there, from an earlier
// attempt of its own or from another client:
//
//   - Create, if the znode exists with the same data, unchanged since its creation, and, if it is
//     [Ephemeral], in the client's session;
//   - Set, if the data is the same and its version is one more than the given version, or the given
//     version is [AnyVersion] and a reply was lost;
//   - Delete, if there is no znode.
//
// It does not report which client had the effect. If two clients set one version to the same data,
// both succeed.
func Idempotent() interface {
	CreateOption
	SetOption
	DeleteOption
} {
	return idempotent{}
}

type idempotent struct{}

func (idempotent) applyCreate(cfg *createConfig) { cfg.given |= withIdempotent }
func (idempotent) applySet(cfg *setConfig)       { cfg.idempotent = true }
func (idempotent) applyDelete(cfg *deleteConfig) { cfg.idempotent = true }
