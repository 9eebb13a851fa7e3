package framework

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/docent-go/docent/framework/internal/requests"
	"github.com/docent-go/docent/framework/internal/session"
	"github.com/docent-go/docent/internal/zkpath"
)

// Protected makes Create find its znode again if the reply was lost. It puts "_c_", a random UUID
// and "-" before the name, as Curator does. A znode that is found counts only if it belongs to the
// client's present session. If Create fails nevertheless, the znode may exist or may still be
// created. The client then deletes it in the background until it is gone or its session has ended.
// Protected requires [Ephemeral].
func Protected() CreateOption { return withProtected }

// KnownBySession makes Create find its znode again if the reply was lost, as [Protected] does, but
// under a given name. The client knows which znodes its session's other creates have made. So Create
// takes the znode at the path for its own if it belongs to the client's present session, is newer than
// the request, and comes from no other create that got its reply. It does not matter who has written to
// the znode since. An [ErrNodeExists] certainly means that the znode is not from this call.
//
// If Create fails nevertheless, the znode may exist or may still be created. The client then
// deletes it in the background until it is gone or its session has ended.
//
// Such creates of one path in one client run one after another. A create waits until the outcome of
// an earlier create is known and its deletion is over, or until ctx ends. Another create of the path by
// the same client, without KnownBySession, is told apart only if it gets its reply. KnownBySession
// requires [Ephemeral], and excludes [Sequential] and Protected.
func KnownBySession() CreateOption { return withSession }

// UntilKnown is for a create that is [Protected] or [KnownBySession], of a znode that is to stay. While the
// outcome of a request is unknown and its session lasts, Create continues until ctx ends, whatever the
// client's policy says, and whatever a server replies but [ErrNoAuth] and [ErrUnsupported]. Else it could end
// Create, and the client would delete the znode and have to create it again.
func UntilKnown() CreateOption { return withPatience }

// A protection finds the znode of one Create again, although its reply was lost: by the id in its name, or, if
// it is known by its session, by the claim on its path.
type protection struct {
	id       string            // "_c_<uuid>-"; empty if the znode is known by its session
	claim    *claim            // nil if there is an id
	epoch    *epoch            // of the path, as the last search found it; may be nil
	inFlight []<-chan struct{} // requests that no caller waits for
}

// protectedPrefix, a UUID and a dash precede the name of a protected znode. The
// format is Curator's (org.apache.curator.framework.imps.ProtectedUtils).
const protectedPrefix = "_c_"

// newProtectedID returns protectedPrefix, a random (version 4) UUID in RFC 9562's text form, and a dash.
func newProtectedID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: it would crash the program
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	id := make([]byte, 0, len(protectedPrefix)+37)
	id = append(id, protectedPrefix...)
	for _, group := range [][]byte{b[:4], b[4:6], b[6:8], b[8:10], b[10:]} {
		id = append(hex.AppendEncode(id, group), '-')
	}
	return string(id)
}

// name returns path with its last element protected.
func (g *protection) name(path string) string {
	name := strings.LastIndexByte(path, '/') + 1
	return path[:name] + g.id + path[name:]
}

// findProtected returns the znode that an earlier attempt has left in the session, as [protection.search] does. A
// znode of an earlier session does not count, whatever its name, because it ends with that session. If the Stat
// is asked for and may not be read, it returns ErrNoAuth.
func (cr *creation) findProtected(ctx context.Context, s *session.Session) (*znode, error) {
	if !cr.earlier.unknown || cr.earlier.session != s.ID() {
		return nil, nil
	}
	made, err := cr.protection.search(ctx, s, cr.path, cr.earlier.before)
	switch {
	case errors.Is(err, ErrTooLarge): // the client can't find out
		return nil, fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	case err != nil:
		return nil, err
	case made == nil:
		cr.earlier.unknown = false // now it is certain that it was not created
	case cr.stat != nil && made.stat.Czxid == 0:
		return nil, ErrNoAuth
	case cr.epoch != nil:
		return cr.checkEpoch(ctx, s, made)
	}
	return made, nil
}

// search looks for the znode of a create at the path after a commit, because the server that replies now may lag
// behind the server of the create, as [earlierAttempts] says. before is the transaction id that the session knew
// before the create. The Stat is the zero value if the znode's ACL lets the client not read it.
func (g *protection) search(ctx context.Context, s *session.Session, path string, before int64) (*znode, error) {
	if err := session.Effect(ctx, s, requests.Prove()); err != nil {
		return nil, err
	}
	if g.claim != nil {
		return g.searchAt(ctx, s, path, before)
	}
	dir, _ := zkpath.Split(path)
	candidates, err := g.candidates(ctx, s, dir)
	if err != nil {
		return nil, err
	}
	for _, full := range candidates {
		found, err := session.Call(ctx, s, requests.Exists(full))
		if errors.Is(err, ErrNoAuth) {
			own, err := owns(ctx, s, full)
			if err != nil || own {
				return &znode{path: full}, err
			}
			continue
		}
		if errors.Is(err, ErrNoNode) || err == nil && (!found.Exists || found.Stat.EphemeralOwner != s.ID()) {
			continue
		}
		return &znode{full, statOf(found.Stat)}, err
	}
	return nil, nil
}

// candidates returns the paths of the znodes in dir whose names begin with the id. If the listing
// of dir is too large, it lists the session's own ephemeral znodes, of which a protected znode is one.
func (g *protection) candidates(ctx context.Context, s *session.Session, dir string) ([]string, error) {
	listed, err := session.Call(ctx, s, requests.Children(dir))
	switch {
	case errors.Is(err, ErrNoNode):
		return nil, nil
	case errors.Is(err, ErrTooLarge):
		return ephemeralsWith(ctx, s, zkpath.Join(dir, g.id))
	}
	var paths []string
	for _, name := range listed.Children {
		if strings.HasPrefix(name, g.id) {
			paths = append(paths, zkpath.Join(dir, name))
		}
	}
	return paths, err
}

// searchAt is search for a znode that is known by its session. What the session knew before the create
// is of earlier creates.
func (g *protection) searchAt(ctx context.Context, s *session.Session, path string, before int64) (*znode, error) {
	if g.epoch != nil {
		if err := g.epoch.read(ctx, s); err != nil {
			return nil, err
		}
	}
	found, err := readStat(ctx, s, path)
	if errors.Is(err, ErrNoAuth) {
		if own, fault := owns(ctx, s, path); fault != nil || !own {
			return nil, fault
		}
	}
	st := found.Stat
	switch {
	case err != nil || !found.Exists || st.EphemeralOwner != s.ID():
		return nil, err
	case s.Zxid() < before:
		return nil, errZxidFell
	case st.Czxid <= before || g.claim.knows(st.Czxid):
		return nil, nil
	}
	return &znode{path, statOf(st)}, nil
}

// conclude records how Create ended. If it failed, and what it may have left is not known, the znode is deleted
// if it exists or is still created. Until that is over, the path stays claimed.
func (cr *creation) conclude(err error) {
	g := cr.protection
	if g == nil {
		return
	}
	left := err != nil && cr.earlier.unknown
	if !left {
		g.finish()
		cr.over.notify(err != nil)
		return
	}
	deletes := cr.client.core.deletes
	x := deletion{session: cr.earlier.session, path: cr.path, protected: g, version: AnyVersion, over: cr.over}
	if err := deletes.add(x, cr.earlier); err != nil {
		deletes.logAbandoned(x, err)
		g.finish()
		x.over.notify(false)
	}
}

// finish reports that the znode's outcome is known, or that no call will find it out. g may be nil.
func (g *protection) finish() {
	if g != nil && g.claim != nil {
		g.claim.release()
	}
}

// attemptProtected makes one attempt at the deletion of what a create may have left.
func (x deletion) attemptProtected(ctx context.Context, c *core, before int64) error {
	g := x.protected
	for _, done := range g.inFlight {
		select {
		case <-done: // else the server could create it after the search
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	rq := request{op: "delete", path: x.path, session: x.session, single: true}
	_, err := do(ctx, c, rq, func(ctx context.Context, s *session.Session) (struct{}, error) {
		found, err := g.search(ctx, s, x.path, before)
		if err != nil || found == nil {
			return struct{}{}, err
		}
		if g.epoch != nil {
			err = g.epoch.delete(ctx, s, found.path)
		} else {
			err = session.Effect(ctx, s, requests.Delete(found.path, AnyVersion))
		}
		// Again until there is none: two attempts may each have created one.
		return struct{}{}, restartUnless(unlessGone(err))
	})
	return err
}

// claims are the paths at which a create that is known by its session is under way or has an unknown
// outcome.
type claims struct {
	mu   sync.Mutex
	held map[string]*claim
}

// A claim is the part of such a create that other creates of the client's have to know.
type claim struct {
	all    *claims
	path   string
	over   chan struct{} // closed once the outcome is known
	others []int64       // czxids of znodes that other creates have made at the path; guarded by claims.mu
}

// claim waits until no other create has claimed the path, and claims it.
func (cr *creation) claim(ctx context.Context) error {
	c := cr.client.core
	own := &claim{all: &c.claims, path: cr.path, over: make(chan struct{})}
	for {
		other := c.claims.add(own)
		if other == nil {
			cr.protection.claim = own
			return nil
		}
		select {
		case <-other.over:
		case <-ctx.Done():
			return ctx.Err()
		case <-c.ctx.Done():
			return ErrClosed
		}
	}
}

// add adds the claim, unless there is another one on its path, which it returns.
func (cs *claims) add(own *claim) (other *claim) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if other := cs.held[own.path]; other != nil {
		return other
	}
	cs.held[own.path] = own
	return nil
}

// note records that a create without a claim has made the znode. It is called before later replies of the
// session have an effect. So who reads the znode by a later request knows whose it is.
func (cs *claims) note(path string, czxid int64) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if other := cs.held[path]; other != nil {
		other.others = append(other.others, czxid)
	}
}

// knows reports whether a create without a claim has made the znode since the path was claimed.
func (cl *claim) knows(czxid int64) bool {
	cl.all.mu.Lock()
	defer cl.all.mu.Unlock()
	return slices.Contains(cl.others, czxid)
}

func (cl *claim) release() {
	cl.all.mu.Lock()
	defer cl.all.mu.Unlock()
	delete(cl.all.held, cl.path)
	close(cl.over)
}
