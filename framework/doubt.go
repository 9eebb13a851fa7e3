package framework

import (
	"context"
	"errors"
	"fmt"

	"github.com/docent-go/docent/framework/internal/session"
	"github.com/docent-go/docent/framework/internal/zkconn"
	"github.com/docent-go/docent/framework/internal/zkerr"
	"github.com/docent-go/docent/internal/proto"
)

// A doubt remembers, over the attempts of one call, whether one of them had an unknown outcome. A
// write is repeated only once it is certain that the earlier attempt had no effect and will have
// none. Otherwise the repetition could be a second effect, or undo a write of another client.
//
// The certainty comes from the znode's Stat, which is read after a sync in the session of the
// earlier attempt. The ensemble serves a session's requests in order, also across connections, so
// the earlier attempt is over by then. If it had an effect, that effect has a higher transaction id
// than all that the session knew before the attempt. Both hold in one session alone: in a later one
// the earlier request may still be on its way, and transaction ids may have begun again.
type doubt struct {
	earlier bool  // an attempt has an unknown outcome
	session int64 // of the latest attempt
	before  int64 // the transaction id that its session knew before it

	chooses bool  // the deletion outlives sessions, so it means the znode that it finds first
	czxid   int64 // of that znode; 0 if it was not read yet
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
func (d *doubt) note(err error) error {
	d.earlier = d.earlier || errors.Is(err, ErrUnknownOutcome)
	return err
}

// settle is called before each attempt to write the znode at the path. It returns nil if the attempt
// is the first, or if the earlier attempt certainly had no effect. unwritten returns why the Stat of
// the znode does not show that; it may be nil.
func (d *doubt) settle(ctx context.Context, s *session.Session, path string, unwritten func(st proto.Stat) error) error {
	if !d.earlier {
		return d.begin(ctx, s)
	}
	found, err := d.look(ctx, s, path)
	switch {
	case err != nil:
		return err
	case !found.Exists:
		return maybeEarlier(ErrNoNode)
	case found.Stat.Czxid > d.before:
		return errCreatedSince
	}
	if unwritten != nil {
		if err := unwritten(found.Stat); err != nil {
			return err
		}
	}
	d.earlier = false
	return d.begin(ctx, s)
}

// begin records what the session knows before an attempt. If no server has replied in this session,
// begin reads first: one round trip, once in a session.
func (d *doubt) begin(ctx context.Context, s *session.Session) error {
	if s.Zxid() == 0 {
		if err := session.Effect(ctx, s, (*zkconn.Conn).Touch); err != nil {
			return unwritten(ctx, err)
		}
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

// look reads the znode at the path once the earlier attempt is over. It returns an error if the
// znode's Stat could not be compared with d.before.
func (d *doubt) look(ctx context.Context, s *session.Session, path string) (proto.Node, error) {
	if s.ID() != d.session {
		return proto.Node{}, errOtherSession
	}
	found, err := readSynced(ctx, s, path)
	switch {
	case err != nil:
		return proto.Node{}, err
	case s.Zxid() < d.before:
		return proto.Node{}, errZxidFell
	}
	return found, nil
}

// readSynced reads a Stat after a sync, because the server may lag behind the server of an earlier
// attempt. The znode need not exist. A refusal says that there was an earlier attempt.
func readSynced(ctx context.Context, s *session.Session, path string) (proto.Node, error) {
	err := session.Effect(ctx, s, func(w *zkconn.Conn) error { return w.Sync(path) })
	if err != nil {
		return proto.Node{}, refused(err)
	}
	found, err := readStat(ctx, s, path)
	return found, refused(err)
}

// readStat reads a Stat. The znode need not exist.
func readStat(ctx context.Context, s *session.Session, path string) (proto.Node, error) {
	found, err := session.Call(ctx, s, func(w *zkconn.Conn) (proto.Node, error) { return w.Exists(path) })
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
