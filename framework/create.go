package framework

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/framework/internal/requests"
	"github.com/docent-go/docent/framework/internal/session"
	"github.com/docent-go/docent/framework/internal/zkerr"
	"github.com/docent-go/docent/internal/errtype"
	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/internal/zkpath"
)

// Create creates a znode with the data, as the options say, and returns its path. With [Sequential]
// or [Protected] the path differs from the given path. As in all writes, nil is an empty array and
// not null, which Curator's recipes can't read.
//
// Create is retried by the client's policy until ctx ends; a request that was never sent is always
// sent again. If the reply to an attempt was lost, Create looks for the znode if it is [Protected].
// If it is only [Sequential], Create returns [ErrUnknownOutcome], because a second znode could
// result. Otherwise Create repeats the request only if the first attempt certainly had no effect: no
// child of the parent was created or deleted since. If not, the error wraps ErrUnknownOutcome. It
// also wraps [ErrNodeExists] if there is a znode, unless [Idempotent] resolves it.
//
// If ctx ends first, the error wraps ctx's error, and ErrUnknownOutcome if a request was sent.
// Other errors: [ErrNodeExists], [ErrNoNode] for a missing parent ([WithParents] creates it),
// [ErrNoAuth], [ErrTooLarge], and the errors of every operation. Below an ephemeral znode the error names that.
func (c *Client) Create(ctx context.Context, path string, data []byte, opts ...CreateOption) (string, error) {
	created, err := c.create(ctx, path, data, opts)
	if err != nil {
		return "", c.callError(ctx, "create", path, err)
	}
	return c.viewPath(created), nil
}

// create is Create on the path in the ensemble, without the wrapping of errors.
func (c *Client) create(ctx context.Context, path string, data []byte, opts []CreateOption) (string, error) {
	cr, err := c.newCreation(path, data, opts)
	if err != nil {
		cr.over.notify(true)
		return "", err
	}
	return cr.run(ctx)
}

// CheckCreate returns the error that [Client.Create] with these arguments returns before it sends
// anything, or nil. The error joins all faults of the arguments, [ErrTooLarge] included.
func (c *Client) CheckCreate(path string, data []byte, opts ...CreateOption) error {
	_, err := c.newCreation(path, data, opts)
	return c.opError("create", path, err)
}

// A creation is one call of Create.
type creation struct {
	createConfig

	client     *Client // whose session it is bound to
	path       string
	data       []byte // as the client sends it
	acls       []acl.Entry
	earlier    earlierAttempts
	made       znode                              // by a reply
	parent     *session.Pending[requests.Created] // sent ahead of the next round of an attempt; nil for none
	protection *protection                        // nil without Protected and KnownBySession
}

// newCreation returns the creation, with all faults of the arguments of Create.
func (c *Client) newCreation(path string, data []byte, opts []CreateOption) (*creation, error) {
	cr := &creation{client: c, data: c.core.cfg.pack(data)}
	faults := applyAll(opts, func(o CreateOption) { o.applyCreate(&cr.createConfig) })
	if err := errors.Join(faults, cr.validate(path)); err != nil {
		return cr, err
	}
	for i, l := range cr.lists {
		if l.dir != "" {
			cr.lists[i].dir = c.fullPath(l.dir)
		}
	}
	if cr.has(withProtected | withSession) {
		cr.protection = new(protection)
	}
	if cr.has(withProtected) {
		cr.protection.id = newProtectedID()
		path = cr.protection.name(path)
	}
	cr.path = c.pathToCreate(path, cr.has(withSequential))
	if cr.epoch != nil {
		if zkpath.IsEpoch(cr.path) {
			return cr, fmt.Errorf("path %q: an epoch has no epoch", errtype.Shortened(path))
		}
		cr.protection.epoch = &epoch{path: zkpath.Epoch(cr.path)}
	}
	cr.acls = cr.aclOf(cr.path)
	return cr, errors.Join(validateACL("ACL", cr.acls), c.core.checkSize(cr.size()))
}

// pathToCreate returns the ensemble's path for a create in the view. A sequential znode of "/" is a child
// of the view's root, as one of the ensemble's root is.
func (c *Client) pathToCreate(path string, sequential bool) string {
	if sequential && path == "/" {
		return c.prefix + "/"
	}
	return c.fullPath(path)
}

// aclOf returns the ACL for the znode or for one of its parents.
func (cr *creation) aclOf(full string) []acl.Entry {
	cfg := &cr.client.core.cfg
	if cr.has(withACL) {
		return cr.acl
	}
	if cfg.aclFor != nil {
		if acl := cfg.aclFor(full); acl != nil {
			return acl
		}
	}
	return cfg.acl
}

func (cr *creation) size() int {
	if cr.epoch != nil {
		size := headSize + multiOpSize
		for _, op := range cr.epochOps() {
			size += op.size()
		}
		return size
	}
	return createSize + len(cr.path) + len(cr.data) + aclSize(cr.acls)
}

// A znode is what a create has made or found. It is passed by pointer, nil for none: by value, each of an
// attempt's many frames would put a Stat on the stack of a caller that may wait long afterwards.
type znode struct {
	path string
	stat Stat
}

// run makes attempts until one has made the znode. A create with a protection first claims its path, if it
// is known by its session. If it fails in the end, the client deletes what it may have left.
func (cr *creation) run(ctx context.Context) (path string, err error) {
	rq := request{op: "create", path: cr.path, session: cr.client.session}
	switch {
	case cr.has(withSequential) && cr.protection == nil:
		rq.once = true
	case cr.has(withPatience):
		rq.patient = cr.mayBeLeft
	}
	err = ErrUnknownOutcome // until there is a reply: a function of the user may panic
	defer func() { cr.conclude(err) }()
	if cr.has(withSession) {
		if err := cr.claim(ctx); err != nil {
			return "", err
		}
	}
	made, err := do(ctx, cr.client.core, rq, cr.attempt)
	if err != nil {
		return "", err
	}
	cr.store(made)
	return made.path, nil
}

// attempt makes one attempt. It looks for what an earlier one has left, sends the create, and removes what
// was in its way: then errRestart makes it begin again.
func (cr *creation) attempt(ctx context.Context, s *session.Session) (*znode, error) {
	made, err := cr.findEarlier(ctx, s)
	if err == nil && made == nil {
		made, err = cr.send(ctx, s)
	}
	switch {
	case cr.has(withIdempotent) && (errors.Is(err, ErrNodeExists) || errors.Is(err, zkerr.ErrEarlierAttempt)):
		return cr.findAlike(ctx, s, err)
	case errors.Is(err, errNoEpoch):
		err = restartUnless(cr.makeEpoch(ctx, s))
	case errors.Is(err, ErrNoNode) && cr.has(withParents):
		err = restartUnless(cr.makeParent(ctx, s))
	case errors.Is(err, ErrNoNode):
		if parent, _ := zkpath.Split(cr.path); cr.client.core.cfg.inChroot(parent) {
			err = fmt.Errorf("%w, of the chroot: check the connect string", err)
		}
		err = fmt.Errorf("%w (WithParents creates it)", err)
	}
	return made, err
}

// findEarlier returns the znode that an earlier attempt has left. There is none if the attempt is the first, or
// if the earlier one certainly had no effect. Otherwise it returns an error.
func (cr *creation) findEarlier(ctx context.Context, s *session.Session) (*znode, error) {
	switch {
	case cr.protection != nil:
		return cr.findProtected(ctx, s)
	case cr.has(withSequential): // no attempt follows one of unknown outcome
		return nil, nil
	}
	return nil, cr.earlier.checkNoEffect(ctx, s, cr.path, func(found proto.Node) error {
		if found.Exists {
			return maybeEarlier(ErrNodeExists)
		}
		return cr.neverExisted(ctx, s)
	})
}

// send sends the create, by itself or together with its epoch, and waits for the reply.
func (cr *creation) send(ctx context.Context, s *session.Session) (made *znode, err error) {
	before, send := s.Zxid(), cr.sendAlone
	if cr.epoch != nil {
		send = cr.sendWithEpoch
	}
	made, done, err := send(ctx, s)
	if errors.Is(err, ErrUnknownOutcome) {
		cr.mayHaveMade(s, before, done)
	}
	return made, err
}

// mayHaveMade records that a request may have made the znode, or may still make it until done is closed. before is
// the transaction id that the session knew when the request was sent.
func (cr *creation) mayHaveMade(s *session.Session, before int64, done <-chan struct{}) {
	cr.earlier.unknown, cr.earlier.session, cr.earlier.before = true, s.ID(), before
	if cr.protection != nil {
		cr.protection.inFlight = append(cr.protection.inFlight, done)
	}
}

// mayBeLeft reports whether a request of the present session may have made the znode.
func (cr *creation) mayBeLeft() bool {
	return cr.earlier.unknown && cr.earlier.session == cr.client.core.current().ID()
}

// sendAlone sends the create, and right after it the reads that the options ask for: a server serves a
// session's requests in the order in which they are sent.
func (cr *creation) sendAlone(ctx context.Context, s *session.Session) (*znode, <-chan struct{}, error) {
	rq := requests.Create(cr.path, cr.data, cr.flags(), cr.acls, cr.ttl)
	if cr.has(withEphemeral) && cr.protection == nil {
		rq.Answered = func(made requests.Created) { cr.client.core.claims.note(made.Path, made.Stat.Czxid) }
	}
	p := session.Begin(s, rq)
	lists := sendReads(s, cr.client.core.limits(), proto.OpGetChildren, cr.listed(nil))
	got, err := p.Wait(ctx)
	if err == nil && !isMade(cr.path, cr.has(withSequential), got.Path) {
		err = errOtherPath
	}
	var made *znode
	var names [][]string
	if err == nil {
		cr.made = znode{got.Path, statOf(got.Stat)}
		made, names = &cr.made, lists.names(ctx)
	} else {
		lists.withdraw()
	}
	cr.storeLists(names)
	return made, p.Done(), explained(err, txnCreate, cr.path, cr.acls)
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

func (cr *creation) store(made *znode) {
	if cr.stat != nil {
		*cr.stat = made.stat
	}
}

// neverExisted returns nil if the znode, which does not exist, was not there since before the
// earlier attempt either. A parent's Pzxid shows the latest creation and deletion of a child. If there
// is no parent, the Pzxid of the nearest znode above shows that there was none.
func (cr *creation) neverExisted(ctx context.Context, s *session.Session) error {
	for dir, _ := zkpath.Split(cr.path); ; dir, _ = zkpath.Split(dir) {
		found, err := readStat(ctx, s, dir)
		switch {
		case err != nil:
			return refused(err)
		case found.Exists && found.Stat.Pzxid > cr.earlier.before:
			return errDeletedSince
		case found.Exists || dir == "/":
			return nil
		}
	}
}

// findAlike returns the znode at the path if it is as this Create would have made it. If not, it returns
// exists, the error of the attempt.
func (cr *creation) findAlike(ctx context.Context, s *session.Session, exists error) (*znode, error) {
	found, err := session.Call(ctx, s, requests.Get(cr.path))
	earlier := errors.Is(exists, zkerr.ErrEarlierAttempt)
	switch {
	case errors.Is(err, ErrNoNode) && !earlier: // another client has just deleted it
		return nil, errRestart
	case errors.Is(err, ErrNoNode):
		return nil, exists
	case err != nil && earlier:
		return nil, refused(err)
	case err != nil:
		return nil, err
	}
	var owner int64
	if cr.has(withEphemeral) {
		owner = s.ID()
	}
	if found.Stat.EphemeralOwner != owner || found.Stat.Version != 0 || !cr.client.core.cfg.sameData(found.Data, cr.data) {
		return nil, exists
	}
	return &znode{cr.path, statOf(found.Stat)}, nil
}

// listed appends the directories that the options ask to list.
func (cr *creation) listed(dirs []string) []string {
	for _, l := range cr.lists {
		dir := l.dir
		if dir == "" {
			dir, _ = zkpath.Split(cr.path)
		}
		dirs = append(dirs, dir)
	}
	return dirs
}

// storeLists stores the first of the names, nil for a listing without a reply, and returns the others.
func (cr *creation) storeLists(names [][]string) (others [][]string) {
	for _, l := range cr.lists {
		*l.names = nil
		if len(names) > 0 {
			*l.names, names = names[0], names[1:]
		}
	}
	return names
}
