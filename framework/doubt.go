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

// A doubt remembers, over the attempts of one call, whether one of them had an unknown outcome.
type doubt struct {
	earlier bool
	before  int64 // the highest transaction id that the client knew before that attempt
}

// errCreatedSince is returned if a second attempt could meet another znode than the first attempt.
var errCreatedSince = fmt.Errorf("%w, and the znode may have been created since", zkerr.ErrEarlierAttempt)

// about returns err. If an earlier attempt of the same call may have caused err, the error also
// says so; then err wraps one of the suspects.
func (d *doubt) about(err error, suspects ...error) error {
	if errors.Is(err, ErrUnknownOutcome) {
		d.earlier = true
		return err
	}
	for _, suspect := range suspects {
		if d.earlier && errors.Is(err, suspect) {
			return fmt.Errorf("%w, maybe by an earlier attempt of this call (%w)", err, zkerr.ErrEarlierAttempt)
		}
	}
	return err
}

// settle is called before each attempt to write the znode at the path. It returns [errCreatedSince]
// if an earlier attempt had an unknown outcome and the present znode was created later. A second
// attempt would then undo a write of another client. settle reads after a sync, because the server
// may lag behind the server of the earlier attempt.
func (d *doubt) settle(ctx context.Context, s *session.Session, path string) error {
	if !d.earlier {
		d.before = s.Zxid()
		return nil
	}
	if err := session.Effect(ctx, s, func(w *zkconn.Conn) error { return w.Sync(path) }); err != nil {
		return err
	}
	found, err := session.Call(ctx, s, func(w *zkconn.Conn) (proto.Node, error) { return w.Exists(path) })
	switch {
	case errors.Is(err, ErrNoNode): // the attempt itself returns it
		return nil
	case err == nil && found.Stat.Czxid > d.before:
		return errCreatedSince
	}
	return err
}
