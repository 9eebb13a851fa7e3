package framework

import (
	"cmp"
	"context"
	"errors"

	"go.uber.org/zap"

	"github.com/docent-go/docent/framework/internal/requests"
	"github.com/docent-go/docent/framework/internal/session"
	"github.com/docent-go/docent/framework/internal/zkerr"
	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/internal/usercall"
)

// Delete deletes the znode. It is retried by the client's policy until ctx ends. If the reply to an
// attempt was lost, Delete repeats the deletion only if the same znode still exists: then the first
// attempt had no effect. Otherwise the error wraps [ErrUnknownOutcome]. It also wraps [ErrNoNode] if
// there is no znode, because this call or another client deleted it. A znode that may have been
// created since is kept; with [CreatedBy] Delete can tell the znodes apart.
//
// Errors: [ErrNoNode] (not with [Idempotent]), [ErrNotEmpty], [ErrBadVersion] (with [AtVersion]),
// [ErrNoAuth], and the errors of every operation.
//
// With [Guaranteed] the client continues in the background. It does so if Delete could not find out
// that the znode is gone, or was not allowed to delete it. There, too, the client keeps a znode
// that may have been created since, and logs that.
func (c *Client) Delete(ctx context.Context, path string, opts ...DeleteOption) error {
	cfg, err := c.newDeletion(path, opts)
	if err != nil {
		return c.opError("delete", path, err)
	}
	err = c.core.deleteNow(ctx, cfg)
	if cfg.idempotent && errors.Is(err, ErrNoNode) {
		return nil
	}
	return c.callError(ctx, "delete", path, err)
}

// deleteNow makes a deletion. It hands an unfinished guaranteed one to the background, even if a function of the
// user panics.
func (c *core) deleteNow(ctx context.Context, cfg deleteConfig) (err error) {
	d := earlierAttempts{chooses: cfg.guaranteed && cfg.session == 0}
	err = ErrUnknownOutcome // until there is a reply
	defer func() {
		if cfg.guaranteed && cfg.unfinished(err) {
			err = errors.Join(err, c.deletes.add(cfg.deletion, d))
		} else {
			cfg.over.notify(err == nil || errors.Is(err, ErrNoNode))
		}
	}()
	var tolerated []error
	if cfg.idempotent {
		tolerated = []error{ErrNoNode}
	}
	return c.delete(ctx, cfg.deletion, false, &d, tolerated...)
}

// Discard deletes the znode in the background, as [Client.Delete] with [Guaranteed] and the options
// does, and does not wait for that. Invalid arguments are logged, and nothing is deleted.
func (c *Client) Discard(path string, opts ...DeleteOption) {
	cfg, err := c.newDeletion(path, opts)
	if err == nil {
		err = c.core.deletes.add(cfg.deletion, earlierAttempts{chooses: cfg.session == 0, confirms: true})
	}
	if err != nil {
		c.core.deletes.logAbandoned(cfg.deletion, err)
	}
}

// newDeletion returns the deletion of a call, or all faults of its arguments.
func (c *Client) newDeletion(path string, opts []DeleteOption) (deleteConfig, error) {
	full, err := c.deletable(path)
	cfg := deleteConfig{deletion: deletion{session: c.session, path: full, version: AnyVersion}}
	faults := applyAll(opts, func(o DeleteOption) { o.applyDelete(&cfg) })
	if err = errors.Join(faults, err, cfg.validate()); err != nil {
		cfg.over.notify(false)
	}
	return cfg, err
}

// deletable returns the path in full, or all faults of a deletion of it.
func (c *Client) deletable(path string) (string, error) {
	full := c.fullPath(path)
	err := errors.Join(ValidatePath(path), c.core.checkSize(deleteSize+len(full)))
	if err == nil && full == "/" {
		err = errors.New("the root can't be deleted")
	}
	return full, err
}

// delete deletes the znode of x; single says that its caller repeats the only attempt. It returns a tolerated error, but
// no observer counts that as a failure. d is what earlier attempts at the same deletion have left.
func (c *core) delete(ctx context.Context, x deletion, single bool, d *earlierAttempts, tolerated ...error) error {
	rq := request{op: "delete", path: x.path, session: x.session, tolerates: tolerated, single: single}
	_, err := do(ctx, c, rq, func(ctx context.Context, s *session.Session) (struct{}, error) {
		return struct{}{}, d.note(x.attempt(ctx, s, d))
	})
	return err
}

// attempt makes one attempt at a deletion.
func (x deletion) attempt(ctx context.Context, s *session.Session, d *earlierAttempts) error {
	if x.atEpoch {
		return x.deleteAtEpoch(ctx, s, d)
	}
	if err := x.check(ctx, s, d); err != nil {
		return err
	}
	return explained(session.Effect(ctx, s, requests.Delete(x.path, x.version)), txnDelete, x.path, nil)
}

// unfinished reports whether the deletion that failed with err may still be done. If the znode ends
// with a session, contenders may wait for it until then. So the deletion is repeated, whatever a
// server replies to it or to the reads that precede it, until the znode is certainly gone or another
// one. If not, no contender waits for the znode, and a reply ends the deletion.
func (x deletion) unfinished(err error) bool {
	if errors.Is(err, ErrReadOnly) {
		return true
	}
	final := zkerr.IsAny(err, ErrNoNode, ErrBadVersion, ErrNotEmpty, ErrSessionEnded, ErrClosed, errCreatedSince)
	return err != nil && !final && (x.session != 0 || noAnswer(err))
}

// noAnswer reports whether err means that there was no reply, neither to the deletion nor to the reads
// that precede it.
func noAnswer(err error) bool {
	return !errors.Is(err, zkerr.ErrEarlierAttempt) &&
		zkerr.IsAny(err, context.Canceled, context.DeadlineExceeded, ErrNotConnected, ErrUnknownOutcome, ErrAuthFailed)
}

// A DeleteOption says which znode [Client.Delete] deletes, and how. [OpDelete] and [OpCheck] take some, too.
type DeleteOption interface{ applyDelete(*deleteConfig) }

type deleteConfig struct {
	deletion
	guaranteed, idempotent bool
}

// validate returns all faults in the combination of options.
func (cfg *deleteConfig) validate() error {
	var faults []error // mostly none, which allocates nothing
	if err := cfg.over.fault(); err != nil {
		faults = append(faults, err)
	}
	if cfg.atEpoch && cfg.czxid == 0 {
		faults = append(faults, errors.New("option AtEpoch: must be combined with CreatedBy"))
	}
	if cfg.atEpoch && cfg.version != AnyVersion {
		faults = append(faults, errors.New("option AtEpoch: cannot be combined with AtVersion"))
	}
	return errors.Join(faults...)
}

type deleteOption func(*deleteConfig)

func (f deleteOption) applyDelete(cfg *deleteConfig) { f(cfg) }

// AtVersion deletes the znode only if its data has this version.
func AtVersion(version int32) DeleteOption {
	return deleteOption(func(cfg *deleteConfig) { cfg.version = version })
}

// Guaranteed makes the client continue in the background. It does so if Delete could not find out
// that the znode is gone, for lack of a connection or because ctx ended. The client repeats the
// deletion until the znode is gone, its session has ended ([Client.InSession]), or the client is
// closed. Delete still returns the error. The znode is the one that the deletion finds first: in a
// view of any session the client reads it before. In a view of one session the client also repeats a
// deletion that failed with [ErrNoAuth], and logs that once.
func Guaranteed() DeleteOption {
	return deleteOption(func(cfg *deleteConfig) { cfg.guaranteed = true })
}

// CreatedBy makes Delete delete only the znode that the transaction czxid created ([Stat] has it),
// and not a later znode at the path. Before each attempt the client reads the znode, after a sync.
// If another transaction created that znode, the meant znode is gone, as [ErrNoNode] says. ZooKeeper
// has no check of a czxid: a znode that is replaced within the round trip of the deletion is deleted
// nevertheless. With [AtEpoch] it is not, if whoever replaces it sets the epoch. Then a Delete reads only
// after a lost reply; [Client.Discard], for which no caller waits, always reads. If the client may not read
// the znode, Delete returns [ErrNoAuth]. In a view of one session ([Client.InSession]) it deletes the znode
// nevertheless if the session has made it.
func CreatedBy(czxid int64) DeleteOption {
	return deleteOption(func(cfg *deleteConfig) { cfg.czxid = czxid })
}

// check is called before each attempt. It returns an error if the attempt could delete another znode
// than the meant one.
func (x deletion) check(ctx context.Context, s *session.Session, d *earlierAttempts) error {
	switch meant := cmp.Or(x.czxid, d.czxid); {
	case meant != 0:
		return x.confirm(ctx, s, meant, d)
	case d.chooses && !d.unknown:
		return x.choose(ctx, s, d)
	}
	return d.checkNoEffect(ctx, s, x.path, d.isFormer)
}

// choose makes d mean the znode that exists now. So a deletion that is to outlive sessions can tell
// that znode from a later one, whatever happens.
func (x deletion) choose(ctx context.Context, s *session.Session, d *earlierAttempts) error {
	found, err := readStat(ctx, s, x.path)
	switch {
	case err != nil:
		return unwritten(ctx, err)
	case !found.Exists:
		return ErrNoNode
	}
	d.czxid = found.Stat.Czxid
	return nil
}

// confirm returns nil if the znode with the czxid still exists at the path.
func (x deletion) confirm(ctx context.Context, s *session.Session, czxid int64, d *earlierAttempts) error {
	found, err := readSynced(ctx, s, x.path)
	if errors.Is(err, ErrNoAuth) && x.session != 0 {
		found, err = x.readOwn(ctx, s, czxid, err)
	}
	switch {
	case err != nil && d.unknown:
		return refused(err)
	case err != nil:
		return unwritten(ctx, err)
	case found.Exists && found.Stat.Czxid == czxid:
		return nil
	case d.unknown:
		return maybeEarlier(ErrNoNode)
	}
	return ErrNoNode
}

// readOwn returns what confirm wants to know of a znode that the client may not read: one that belongs to the
// session is taken for the meant one. refusal is the error of reading. It is returned if another znode is
// there, unless the meant one is known to be the session's, because it has an epoch.
func (x deletion) readOwn(ctx context.Context, s *session.Session, czxid int64, refusal error) (proto.Node, error) {
	own, err := owns(ctx, s, x.path)
	switch {
	case err != nil:
		return proto.Node{}, err
	case own:
		return proto.Node{Exists: true, Stat: proto.Stat{Czxid: czxid}}, nil
	case x.atEpoch:
		return proto.Node{}, nil
	}
	return proto.Node{}, refusal
}

// WhenOver calls fn once, when the deletion is over, and says whether the znode is known to be gone.
// If Delete finishes it, fn is called before Delete returns. If the deletion continues in the
// background, fn is called when the znode is gone, its session has ended, or the client is closed;
// then fn has a goroutine of its own. A znode whose session has ended may exist until the ensemble
// has expired the session. If it is gone, a caller may, for example, create the path's next znode.
// fn may call the client, Close included.
//
// For a Create that is [Protected] or [KnownBySession], the deletion is that of the znode that a failed
// Create may have left. If there is nothing to delete, fn is called before Create returns: gone is false if
// Create succeeds, and true if it has certainly left no znode.
func WhenOver(fn func(gone bool)) interface {
	CreateOption
	DeleteOption
} {
	return &overHook{fn}
}

// An overHook is a function that is called when a deletion is over.
type overHook struct{ fn func(gone bool) }

func (h *overHook) applyCreate(cfg *createConfig) { cfg.over, cfg.given = h, cfg.given|withWhenOver }
func (h *overHook) applyDelete(cfg *deleteConfig) { cfg.over = h }

// fault returns the fault of the option.
func (h *overHook) fault() error {
	if h != nil && h.fn == nil {
		return errors.New("option WhenOver: the function must not be nil")
	}
	return nil
}

// notify calls the function for the caller of an operation.
func (h *overHook) notify(gone bool) {
	if h != nil && h.fn != nil {
		h.fn(gone)
	}
}

// notifyLater calls the function on a goroutine of its own, because Close waits for the goroutines of
// the client, and the function may call Close. The goroutine ends when the function returns.
func (h *overHook) notifyLater(log *zap.Logger, gone bool) {
	if h != nil {
		go usercall.Guard(log, "WhenOver", func() { h.fn(gone) })
	}
}
