package framework

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/docent-go/docent/framework/internal/session"
	"github.com/docent-go/docent/framework/internal/tap"
	"github.com/docent-go/docent/framework/internal/zkconn"
	"github.com/docent-go/docent/internal/proto"
)

// A createdNode is the content of the reply to a create.
type createdNode struct {
	path  string
	stat  Stat
	known bool // the reply had the Stat
}

func (cr *creation) run(ctx context.Context) (string, error) {
	rq := request{op: "create", path: cr.path, session: cr.session, repeat: repeatable}
	if cr.has(withSequential) && cr.guard == nil {
		rq.repeat = once
	}
	if cr.claims != nil {
		settle, err := cr.claims.enter(ctx, cr.core, cr.path)
		if err != nil {
			return "", err
		}
		cr.guard.settle = settle
	}
	err := ErrUnknownOutcome // until there is a reply: a function of the user may panic
	if cr.guard != nil {
		defer func() { cr.guard.conclude(cr.core, cr.path, err) }()
	}
	created, err := do(ctx, cr.core, rq, cr.attempt)
	return created, err
}

// attempt makes one attempt: it returns the path of a znode, or the error that prevents one.
func (cr *creation) attempt(ctx context.Context, s *session.Session) (string, error) {
	if cr.guard != nil {
		path, st, err := cr.findAtEpoch(ctx, s)
		if err != nil || path != "" {
			cr.store(st)
			return path, err
		}
	} else if !cr.has(withSequential) {
		path, err := cr.settleEarlier(ctx, s)
		if err != nil || path != "" {
			return path, err
		}
	}
	var parent *session.Pending[string]
	for range maxParentRounds {
		path, err := cr.send(ctx, s)
		if cr.has(withIdempotent) && errors.Is(err, ErrNodeExists) {
			path, err := cr.settle(ctx, s, err)
			if errors.Is(err, ErrNoNode) {
				continue // another client has just deleted it
			}
			return path, err
		}
		if errors.Is(err, errNoEpoch) {
			if err := cr.makeEpoch(ctx, s); err != nil {
				return "", err
			}
			continue
		}
		if !cr.has(withParents) || !errors.Is(err, ErrNoNode) {
			return path, cr.doubt.note(err)
		}
		if parent, err = cr.makeParent(ctx, s, parent); err != nil {
			return "", err
		}
	}
	return "", errParentsRemoved
}

// maxParentRounds is how often the parents may be reaped as empty containers before Create fails.
// In each round another client deleted its last child at that very moment.
const maxParentRounds = 16

var errParentsRemoved = fmt.Errorf("%w: its parents were removed %d times while it was created", ErrNoNode, maxParentRounds)

// send sends the create itself and waits for the reply.
func (cr *creation) send(ctx context.Context, s *session.Session) (string, error) {
	if cr.epoch != nil {
		return cr.sendWithEpoch(ctx, s)
	}
	if cr.has(withTTL) && s.Tap().Lacks(proto.OpCreateTTL) {
		return "", ErrUnsupported
	}
	p := cr.begin(ctx, s)
	made, err := p.Wait(ctx)
	p.lists.store(ctx, &cr.createConfig, err)
	cr.storeWatch(ctx, p.watch, made, err)
	if cr.guard != nil && errors.Is(err, ErrUnknownOutcome) {
		cr.guard.doubt(p.Session().ID(), p.Done())
	}
	switch {
	case err != nil || cr.stat == nil:
		return made.path, err
	case made.known:
		cr.store(made.stat)
		return made.path, nil
	}
	err = cr.readCreated(ctx, s, made.path)
	if err != nil && cr.guard != nil {
		cr.guard.doubt(s.ID(), p.Done()) // it exists, and the next attempt is to find it
	}
	return made.path, err
}

// request runs to its end also if no caller waits for it any more, because f has to end.
func (cr *creation) request(f *tap.Following, w *zkconn.Conn) (made createdNode, err error) {
	f.Begin()
	if cr.has(withTTL) {
		made.path, err = w.CreateTTL(cr.path, cr.data, cr.flags(), wireACL(cr.acls), cr.ttl)
	} else {
		made.path, err = w.Create(cr.path, cr.data, cr.flags(), wireACL(cr.acls))
	}
	st, known := f.End()
	made.stat, made.known = statOf(st), known
	if err == nil && !isMade(cr.path, cr.has(withSequential), made.path) {
		err = errOtherPath
	}
	return made, err
}

// errOtherPath is the error of a create whose reply names a znode that it can't have created. Its znode
// exists nevertheless, as far as the client can know.
var errOtherPath = fmt.Errorf("%w: the reply names another znode", ErrUnknownOutcome)

// isMade reports whether a create of the path can have created the znode: that of the path itself, or
// with a number of at least ten characters behind it.
func isMade(path string, sequential bool, znode string) bool {
	number, ok := strings.CutPrefix(znode, path)
	if !ok || !sequential {
		return ok && number == ""
	}
	return len(number) >= 10 && strings.Trim(strings.TrimPrefix(number, "-"), "0123456789") == ""
}

// readCreated reads the Stat if the reply had none that could be read.
func (cr *creation) readCreated(ctx context.Context, s *session.Session, path string) error {
	found, err := session.Call(ctx, s, func(w *zkconn.Conn) (proto.Node, error) { return w.Exists(path) })
	cr.store(statOf(found.Stat))
	return err
}

func (cr *creation) store(st Stat) {
	if cr.stat != nil {
		*cr.stat = st
	}
}

// settleEarlier is called before each attempt at a create of a given name. It returns no error if the
// attempt is the first, or if the earlier attempt certainly had no effect. With Idempotent it returns
// the path of a znode that is as this Create would have made it.
func (cr *creation) settleEarlier(ctx context.Context, s *session.Session) (string, error) {
	d := &cr.doubt
	if !d.earlier {
		return "", d.begin(ctx, s)
	}
	found, err := d.look(ctx, s, cr.path)
	switch {
	case errors.Is(err, errOtherSession) || errors.Is(err, errZxidFell) || err == nil && found.Exists:
		if err == nil {
			err = maybeEarlier(ErrNodeExists)
		}
		if !cr.has(withIdempotent) {
			return "", err
		}
		path, settled := cr.settle(ctx, s, err)
		if errors.Is(settled, ErrNoNode) {
			return "", err
		}
		return path, settled
	case err != nil:
		return "", err
	}
	if err := cr.neverExisted(ctx, s); err != nil {
		return "", err
	}
	d.earlier = false
	return "", d.begin(ctx, s)
}

// neverExisted returns nil if the znode, which does not exist, was not there since before the
// earlier attempt either. A parent's Pzxid shows the latest creation and deletion of a child. If there
// is no parent, the Pzxid of the nearest znode above shows that there was none.
func (cr *creation) neverExisted(ctx context.Context, s *session.Session) error {
	for dir, _ := SplitPath(cr.path); ; dir, _ = SplitPath(dir) {
		found, err := readStat(ctx, s, dir)
		switch {
		case err != nil:
			return refused(err)
		case found.Exists && found.Stat.Pzxid > cr.doubt.before:
			return errDeletedSince
		case found.Exists || dir == "/":
			return nil
		}
	}
}

// settle checks whether the znode that exists is as this Create would have made it, and returns
// exists if it is not.
func (cr *creation) settle(ctx context.Context, s *session.Session, exists error) (string, error) {
	found, err := session.Call(ctx, s, func(w *zkconn.Conn) (proto.Node, error) { return w.Get(cr.path) })
	if err != nil {
		return "", err
	}
	owned := !cr.has(withEphemeral) && found.Stat.EphemeralOwner == 0 || cr.has(withEphemeral) && found.Stat.EphemeralOwner == s.ID()
	if !owned || found.Stat.Version != 0 || !bytes.Equal(found.Data, cr.data) {
		return "", exists
	}
	cr.store(statOf(found.Stat))
	return cr.path, nil
}

// makeParent creates the parent of the path, because a create has just found it missing. last is the
// request for the parent that preceded that create, nil if there was none. If last found its own
// parent missing, makeParent creates all that is missing. It returns as makeParents does.
func (cr *creation) makeParent(ctx context.Context, s *session.Session, last *session.Pending[string]) (*session.Pending[string], error) {
	dir, _ := SplitPath(cr.path)
	if last == nil {
		return cr.beginParent(ctx, s, dir)
	}
	_, err := last.Wait(ctx)
	switch {
	case errors.Is(err, ErrNoNode):
		above, _ := SplitPath(dir)
		return cr.makeParents(ctx, s, dir, above)
	case err == nil || errors.Is(err, ErrNodeExists): // it was reaped meanwhile
		return cr.beginParent(ctx, s, dir)
	}
	return nil, err
}

// makeParents creates the missing parents of the path, as containers. Like Curator it searches from
// below for the first that exists, since it may not be allowed to read further up. The search begins
// above those that are known to be missing. makeParents returns the request for the last, the parent,
// as soon as that is sent.
func (cr *creation) makeParents(ctx context.Context, s *session.Session, missing ...string) (parent *session.Pending[string], err error) {
	top := cr.path
	if len(missing) > 0 {
		top = missing[len(missing)-1]
	}
	for dir, _ := SplitPath(top); dir != "/"; dir, _ = SplitPath(dir) {
		found, err := session.Call(ctx, s, func(w *zkconn.Conn) (proto.Node, error) { return w.Exists(dir) })
		if errors.Is(err, ErrNoAuth) { // it exists: since 3.8.4 and 3.9.2, exists needs READ
			break
		}
		if err != nil && !errors.Is(err, ErrNoNode) {
			return nil, err
		}
		if found.Exists {
			break
		}
		missing = append(missing, dir)
	}
	for i, dir := range slices.Backward(missing) {
		p, err := cr.beginParent(ctx, s, dir)
		if i == 0 || err != nil {
			return p, err
		}
		if err := parentMade(ctx, p); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// beginParent creates one parent, and returns the request as soon as it is sent. The create follows it
// closely, so no server has time to find the parent empty. Parents hold an empty array, as Curator's
// do, because some clients can't read a znode that holds null.
func (cr *creation) beginParent(ctx context.Context, s *session.Session, dir string) (*session.Pending[string], error) {
	acl := cr.aclOf(dir)
	if err := validateACL("ACL of "+dir, acl); err != nil {
		return nil, err
	}
	f := s.Tap().FollowCreate(dir)
	p := session.Begin(s, func(w *zkconn.Conn) (string, error) {
		f.Begin()
		defer f.End()
		return w.Create(dir, []byte{}, proto.FlagContainer, wireACL(acl))
	})
	select {
	case <-f.Sent():
	case <-p.Done():
	case <-ctx.Done():
	}
	return p, nil
}

// parentMade waits for the create of a parent and returns its fault. A parent that exists is none.
// If its own parent was reaped meanwhile, the next round creates both, from below.
func parentMade(ctx context.Context, parent *session.Pending[string]) error {
	if parent == nil {
		return nil
	}
	_, err := parent.Wait(ctx)
	if errors.Is(err, ErrNodeExists) || errors.Is(err, ErrNoNode) {
		return nil
	}
	return err
}
