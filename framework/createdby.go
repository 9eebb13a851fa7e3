package framework

import (
	"context"
	"errors"
)

// CreatedBy makes Delete mean the znode that the transaction czxid created (see
// [Stat]), and not what somebody else may have put in its place: wherever the reply
// to an attempt was lost, and in the background, the client looks before it
// deletes again, and takes a znode that another transaction created for proof
// that the one meant is gone. Only the first request goes without a look: where
// it is not known that the znode stands, have [Client.Exists] tell.
func CreatedBy(czxid int64) DeleteOption {
	return deleteOption(func(cfg *deleteConfig) { cfg.czxid = czxid })
}

// A looking says when a deletion that means one czxid looks before it deletes.
type looking int

const (
	lookFirst      looking = iota + 1 // at every attempt, of which there is one: whoever asks repeats it
	lookAfterDoubt                    // once an attempt's outcome is unknown
)

// stands reports whether the znode that is meant is still there. It asks after a
// sync: the server may lag behind the one that an earlier attempt went to.
func (x deletion) stands(ctx context.Context, s *session) (bool, error) {
	if _, err := call(ctx, s, func(w *wire) (struct{}, error) { return struct{}{}, w.Sync(x.path) }); err != nil {
		return false, err
	}
	found, err := call(ctx, s, func(w *wire) (nodeState, error) { return w.exists(x.path) })
	if errors.Is(err, ErrNoNode) {
		return false, nil
	}
	return found.exists && found.stat.Czxid == x.czxid, err
}
