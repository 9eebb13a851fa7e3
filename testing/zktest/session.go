package zktest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/docent-go/docent/internal/proto"
)

const (
	// killPause keeps a killer from turning in circles while the server is away or
	// the owner keeps taking its session back.
	killPause = 10 * time.Millisecond

	// killAttempt bounds one attempt: a server that is cut off from its leader
	// takes the request and never answers.
	killAttempt = 2 * time.Second

	// maxFrame bounds a frame that is read here; a handshake's answer has 37 bytes.
	maxFrame = 1 << 20
)

// errEnded says that the server has done what closeSession asks for.
var errEnded = errors.New("session closed, not yet refused")

// KillSession makes the server at addr end a session, as though its time were over. Its ephemeral
// nodes are deleted, and its owner learns of the expiry with its next request. KillSession returns
// nil when the server refuses the session's id, which is the proof.
//
// It takes the session over with id and password, which the owner got in its handshake, and closes
// it. The owner loses its connection and, as long as it succeeds in reconnecting, takes the
// session back; KillSession tries again until it wins. If a test keeps its client from dialing
// meanwhile, the first attempt succeeds.
//
// If ctx ends first, the session may or may not be alive. It may have another timeout until its
// owner reconnects. The error is ctx's, with the last attempt's. [ErrNoSession] means that the
// very first attempt was refused.
func KillSession(ctx context.Context, addr string, id int64, password []byte) error {
	if id == 0 {
		return errors.New("zktest: session 0: must be one that a server has granted")
	}
	var last error
	for first := true; ; first = false {
		err := killOnce(ctx, addr, id, password)
		if errors.Is(err, ErrNoSession) {
			if first {
				return fmt.Errorf("%w: 0x%x by %s: it had ended, or the password is wrong", ErrNoSession, id, addr)
			}
			return nil
		}
		if ctx.Err() == nil || last == nil {
			last = err
		}
		// The pause is for what failed; a success is at once put to the proof.
		pause := killPause
		if errors.Is(err, errEnded) {
			pause = 0
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("zktest: kill session 0x%x: %w; last attempt: %w", id, ended(ctx), last)
		case <-time.After(pause):
		}
	}
}

// killOnce returns errEnded when the server has closed the session, and
// ErrNoSession when it refuses it.
func killOnce(ctx context.Context, addr string, id int64, password []byte) error {
	ctx, cancel := context.WithTimeout(ctx, killAttempt)
	defer cancel()
	conn, stop, err := dial(ctx, addr)
	if err != nil {
		return err
	}
	defer stop()

	hello := proto.ConnectRequest{Timeout: 10_000, Session: id, Password: password}
	if _, err := conn.Write(hello.Frame()); err != nil {
		return err
	}
	body, err := proto.ReadFrame(conn, maxFrame)
	if err != nil {
		return err
	}
	d := proto.NewDecoder(body)
	if answer := d.ConnectReply(); d.Err() != nil {
		return fmt.Errorf("answer to the handshake: %w", d.Err())
	} else if answer.Timeout <= 0 || answer.Session != id {
		return ErrNoSession
	}
	const xid = 1
	if _, err := conn.Write(proto.RequestFrame(xid, proto.OpCloseSession, nil)); err != nil {
		return err
	}
	for {
		body, err := proto.ReadFrame(conn, maxFrame)
		if err != nil {
			return err
		}
		d := proto.NewDecoder(body)
		if d.ReplyHead().Xid == xid { // and not that of an event
			return errEnded
		}
	}
}
