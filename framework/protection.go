package framework

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/docent-go/docent/framework/internal/session"
	"github.com/docent-go/docent/framework/internal/zkconn"
	"github.com/docent-go/docent/internal/proto"
)

// protectedPrefix, a UUID and a dash precede the name of a protected znode. The
// format is Curator's (org.apache.curator.framework.imps.ProtectedUtils).
const protectedPrefix = "_c_"

// A protection recognises the znode of one Create by the UUID in its name. The create may have been
// applied although its reply was lost.
type protection struct {
	id       string            // "_c_<uuid>-"
	session  int64             // of the create with the unknown outcome; 0 if none
	inFlight []<-chan struct{} // requests that no caller waits for

	byData bool   // KnownByData: there is no id, and
	data   []byte // the znode at the path holds this
	epoch  *epoch // of that path, before the last search; may be nil
	settle func() // to be called once the outcome is known; may be nil

	over    chan struct{}    // closed once the deletion is over; nil if there is none
	storeIn *<-chan struct{} // gets over; may be nil
}

// DeletionTo is for a create that is [Protected] or [KnownByData]. If Create fails, and the client
// deletes the znode in the background, DeletionTo stores a channel in over. The channel is closed
// when that is over: the znode is gone, its session has ended, or the client is closed. A znode
// whose session has ended may exist until the ensemble has expired the session. DeletionTo stores
// nil if Create succeeds, or if it is certain that Create has left no znode.
func DeletionTo(over *<-chan struct{}) CreateOption {
	return createOption(func(cfg *createConfig) {
		cfg.over = over
		if over != nil {
			cfg.given |= withDeletion
		}
	})
}

func newProtection() *protection { return &protection{id: protectedPrefix + newUUID() + "-"} }

// newUUID returns a random (version 4) UUID, in RFC 9562's text form.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: it would crash the program
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	digits := hex.EncodeToString(b[:])
	return digits[:8] + "-" + digits[8:12] + "-" + digits[12:16] + "-" + digits[16:20] + "-" + digits[20:]
}

// name returns path with its last element protected.
func (g *protection) name(path string) string {
	dir, name := SplitPath(path)
	return JoinPath(dir, g.id+name)
}

// doubt records that a request in the session may have created the znode, or may still create it.
// The request has ended when done is closed.
func (g *protection) doubt(session int64, done <-chan struct{}) {
	g.session = session
	g.inFlight = append(g.inFlight, done)
}

// find looks for the znode that an earlier attempt may have left, and returns "" if there is none.
// A znode of an earlier session does not count, whatever its name, because it ends with that
// session.
func (g *protection) find(ctx context.Context, s *session.Session, path string) (string, Stat, error) {
	if g.session == 0 || g.session != s.ID() {
		return "", Stat{}, nil
	}
	found, st, err := g.search(ctx, s, path)
	switch {
	case err == nil && found == "":
		g.session = 0 // now it is certain that it was not created
	case errors.Is(err, ErrTooLarge): // the client can't find out
		err = fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	}
	return found, st, err
}

// search looks for the znode after a sync, because the server that replies now may lag behind the
// server of the create.
func (g *protection) search(ctx context.Context, s *session.Session, path string) (string, Stat, error) {
	dir, _ := SplitPath(path)
	if err := session.Effect(ctx, s, func(w *zkconn.Conn) error { return w.Sync(dir) }); err != nil {
		return "", Stat{}, err
	}
	if g.byData {
		return g.searchAt(ctx, s, path)
	}
	candidates, err := g.candidates(ctx, s, dir)
	if err != nil {
		return "", Stat{}, err
	}
	for _, full := range candidates {
		found, err := session.Call(ctx, s, func(w *zkconn.Conn) (proto.Node, error) { return w.Exists(full) })
		if errors.Is(err, ErrNoNode) || err == nil && (!found.Exists || found.Stat.EphemeralOwner != s.ID()) {
			continue
		}
		return full, statOf(found.Stat), err
	}
	return "", Stat{}, nil
}

// delete deletes the znode that the last search has found.
func (g *protection) delete(ctx context.Context, s *session.Session, path string) error {
	if g.epoch != nil {
		return g.epoch.delete(ctx, s, path)
	}
	err := session.Effect(ctx, s, func(w *zkconn.Conn) error { return w.Delete(path, AnyVersion) })
	return err
}

// candidates returns the paths of the znodes in dir whose names begin with the id. If the listing
// of dir is too large, it lists the session's own ephemeral znodes. They are enough, because a
// protected znode is one of them; servers from 3.6 on can list them.
func (g *protection) candidates(ctx context.Context, s *session.Session, dir string) ([]string, error) {
	listed, err := session.Call(ctx, s, func(w *zkconn.Conn) (proto.Node, error) { return w.Children(dir) })
	switch {
	case errors.Is(err, ErrNoNode):
		return nil, nil
	case errors.Is(err, ErrTooLarge):
		paths, asked := ephemeralsWith(ctx, s, JoinPath(dir, g.id))
		if errors.Is(asked, ErrUnsupported) {
			asked = fmt.Errorf("%w, and %w", err, asked)
		}
		return paths, asked
	}
	var paths []string
	for _, name := range listed.Children {
		if strings.HasPrefix(name, g.id) {
			paths = append(paths, JoinPath(dir, name))
		}
	}
	return paths, err
}

// conclude records how Create ended. If Create failed, the znode is deleted if it exists or is
// still created.
func (g *protection) conclude(c *core, path string, err error) {
	if err == nil || g.session == 0 {
		g.settled()
		return
	}
	if g.storeIn != nil {
		g.over = make(chan struct{})
		*g.storeIn = g.over
	}
	x := deletion{session: g.session, path: path, protected: g, version: AnyVersion}
	if err := c.deletes.add(x, doubt{}); err != nil {
		c.deletes.logGivenUp(x, err)
		g.settled()
	}
}

// settled reports that the znode's outcome is known, or that no call will find it out. g may be nil.
func (g *protection) settled() {
	if g == nil {
		return
	}
	if g.settle != nil {
		g.settle()
	}
	if g.over != nil {
		close(g.over)
	}
}
