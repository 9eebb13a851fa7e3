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
	"time"

	"github.com/docent-go/docent/framework/internal/requests"
	"github.com/docent-go/docent/framework/internal/session"
	"github.com/docent-go/docent/framework/internal/watchreg"
	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/internal/zkpath"
)

func (cr *creation) run(ctx context.Context) (string, error) {
	rq := request{op: "create", path: cr.path, session: cr.session, repeat: repeatable}
	if cr.has(withSequential) && cr.protection == nil {
		rq.repeat = once
	}
	if cr.has(withPatience) {
		rq.patient = func() bool { return cr.protection.session != 0 && cr.protection.session == cr.core.current().ID() }
	}
	if cr.has(withSession) {
		unlock, err := cr.core.claims.lock(ctx, cr.core, cr.path)
		if err != nil {
			return "", err
		}
		cr.protection.unlock = unlock
	}
	err := ErrUnknownOutcome // until there is a reply: a function of the user may panic
	if cr.protection != nil {
		defer func() { cr.protection.conclude(cr.core, cr.path, err) }()
	}
	created, err := do(ctx, cr.core, rq, cr.attempt)
	return created, err
}

// attempt makes one attempt: it returns the path of a znode, or the error that prevents one.
func (cr *creation) attempt(ctx context.Context, s *session.Session) (string, error) {
	path, err := cr.find(ctx, s)
	if err != nil || path != "" {
		return path, err
	}
	path, err = cr.send(ctx, s)
	last := cr.parent
	cr.parent = nil
	switch {
	case cr.has(withIdempotent) && errors.Is(err, ErrNodeExists):
		path, err = cr.checkExisting(ctx, s, err)
		if errors.Is(err, ErrNoNode) { // another client has just deleted it
			err = errAgain
		}
		return path, err
	case errors.Is(err, errNoEpoch):
		return "", again(cr.makeEpoch(ctx, s, last))
	case cr.has(withParents) && errors.Is(err, ErrNoNode):
		return "", again(cr.makeParent(ctx, s, last))
	case cr.epoch == nil: // else it may be the epoch's
		err = explained(err, txnCreate, cr.path, cr.acls)
	}
	if errors.Is(err, ErrNoNode) {
		err = fmt.Errorf("%w (WithParents creates it)", err)
	}
	return path, cr.earlier.note(err)
}

// find looks for what an earlier attempt may have left.
func (cr *creation) find(ctx context.Context, s *session.Session) (string, error) {
	switch {
	case cr.protection != nil:
		path, st, err := cr.findAtEpoch(ctx, s)
		if err != nil || path != "" {
			cr.store(st)
		}
		return path, err
	case !cr.has(withSequential):
		return cr.checkEarlier(ctx, s)
	}
	return "", nil
}

// send sends the create itself and waits for the reply.
func (cr *creation) send(ctx context.Context, s *session.Session) (string, error) {
	if cr.epoch != nil {
		return cr.sendWithEpoch(ctx, s)
	}
	before := s.Zxid()
	p := cr.begin(s)
	made, err := p.Wait(ctx)
	if err == nil && !isMade(cr.path, cr.has(withSequential), made.Path) {
		err = errOtherPath
	}
	var names [][]string
	if err == nil {
		names = p.lists.names(ctx)
	} else {
		p.lists.withdraw()
	}
	cr.storeLists(names)
	cr.storeWatch(ctx, p.watch, made, err)
	if cr.protection != nil && errors.Is(err, ErrUnknownOutcome) {
		cr.protection.mayHaveCreated(p.Session().ID(), before, p.Done())
	}
	if err == nil {
		cr.store(statOf(made.Stat))
	}
	return made.Path, err
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

func (cr *creation) store(st Stat) {
	if cr.stat != nil {
		*cr.stat = st
	}
}

// checkEarlier is called before each attempt at a create of a given name. It returns no error if the
// attempt is the first, or if the earlier attempt certainly had no effect. With Idempotent it returns
// the path of a znode that is as this Create would have made it.
func (cr *creation) checkEarlier(ctx context.Context, s *session.Session) (string, error) {
	d := &cr.earlier
	if !d.unknown {
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
		path, other := cr.checkExisting(ctx, s, err)
		if errors.Is(other, ErrNoNode) {
			return "", err
		}
		return path, other
	case err != nil:
		return "", err
	}
	if err := cr.neverExisted(ctx, s); err != nil {
		return "", err
	}
	d.unknown = false
	return "", d.begin(ctx, s)
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

// checkExisting checks whether the znode that exists is as this Create would have made it, and returns
// exists if it is not.
func (cr *creation) checkExisting(ctx context.Context, s *session.Session, exists error) (string, error) {
	found, err := session.Call(ctx, s, requests.Get(cr.path))
	if err != nil {
		return "", err
	}
	owned := !cr.has(withEphemeral) && found.Stat.EphemeralOwner == 0 || cr.has(withEphemeral) && found.Stat.EphemeralOwner == s.ID()
	if !owned || found.Stat.Version != 0 || !cr.core.cfg.sameData(found.Data, cr.data) {
		return "", exists
	}
	cr.store(statOf(found.Stat))
	return cr.path, nil
}

// makeParent creates the parent of the path, because a create has just found it missing. last is the
// request for the parent that preceded that create, nil if there was none. If last found its own
// parent missing, makeParent creates all that is missing. It does not wait for the parent's own create.
func (cr *creation) makeParent(ctx context.Context, s *session.Session, last *session.Pending[requests.Created]) (err error) {
	dir, _ := zkpath.Split(cr.path)
	if last == nil {
		cr.parent, err = cr.beginParent(s, dir)
		return err
	}
	_, err = last.Wait(ctx)
	switch {
	case errors.Is(err, ErrNoNode):
		above, _ := zkpath.Split(dir)
		cr.parent, err = cr.makeParents(ctx, s, dir, above)
	case err == nil || errors.Is(err, ErrNodeExists): // it was reaped meanwhile
		cr.parent, err = cr.beginParent(s, dir)
	default:
		err = explained(err, txnCreate, dir, cr.aclOf(dir))
	}
	return err
}

// makeParents creates the missing parents of the path, as containers. Like Curator it searches from
// below for the first that exists, since it may not be allowed to read further up. The search begins
// above those that are known to be missing. makeParents returns the request for the last, the parent,
// as soon as that is sent.
func (cr *creation) makeParents(
	ctx context.Context, s *session.Session, missing ...string,
) (parent *session.Pending[requests.Created], err error) {
	top := cr.path
	if len(missing) > 0 {
		top = missing[len(missing)-1]
	}
	for dir, _ := zkpath.Split(top); dir != "/"; dir, _ = zkpath.Split(dir) {
		found, err := session.Call(ctx, s, requests.Exists(dir))
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
		p, err := cr.beginParent(s, dir)
		if i == 0 || err != nil {
			return p, err
		}
		if err := parentMade(ctx, p); err != nil {
			return nil, explained(err, txnCreate, dir, cr.aclOf(dir))
		}
	}
	return nil, nil
}

// beginParent creates one parent, and does not wait for the reply. The create follows it closely, so
// no server has time to find the parent empty. Parents hold an empty array, as Curator's do, because
// some clients can't read a znode that holds null.
func (cr *creation) beginParent(s *session.Session, dir string) (*session.Pending[requests.Created], error) {
	acl := cr.aclOf(dir)
	if err := validateACL("ACL of "+dir, acl); err != nil {
		return nil, err
	}
	return session.Begin(s, requests.Create(dir, []byte{}, proto.FlagContainer, acl, 0)), nil
}

// parentMade waits for the create of a parent and returns its fault. A parent that exists is none.
// If its own parent was reaped meanwhile, the next round creates both, from below.
func parentMade(ctx context.Context, parent *session.Pending[requests.Created]) error {
	if parent == nil {
		return nil
	}
	_, err := parent.Wait(ctx)
	if errors.Is(err, ErrNodeExists) || errors.Is(err, ErrNoNode) {
		return nil
	}
	return err
}

// A sentCreate is a create that was sent, and the requests that were sent after it.
type sentCreate struct {
	*session.Pending[requests.Created]
	lists readsSent
	watch *beginning // nil if none was sent
}

// begin sends the create, and after it the listing and the watch if the options ask for them. A
// server serves a session's requests in the order in which they are sent.
func (cr *creation) begin(s *session.Session) sentCreate {
	rq := requests.Create(cr.path, cr.data, cr.flags(), cr.acls, cr.ttl)
	if cr.has(withEphemeral) && cr.protection == nil {
		rq.Answered = func(made requests.Created) { cr.core.claims.note(made.Path, made.Stat.Czxid) }
	}
	sent := sentCreate{Pending: session.Begin(s, rq)}
	if cr.lists != nil {
		sent.lists = cr.list(s)
	}
	if cr.watch != nil && !cr.has(withSequential) {
		begun := cr.core.beginWatch(s, watchreg.Key{Kind: watchreg.Exists, Path: cr.path}, false, time.Time{})
		sent.watch = &begun
	}
	return sent
}

// storeWatch waits for the watch and stores it if it is on the znode that was created. err is the
// create's error; if it is nil, made is the znode.
func (cr *creation) storeWatch(ctx context.Context, b *beginning, made requests.Created, err error) {
	if cr.watch == nil {
		return
	}
	*cr.watch = nil
	if b == nil {
		return
	}
	w, fault := b.wait(ctx)
	switch {
	case fault != nil: // a later call of Watch returns it, too
	case err != nil || w.sub.Found().Stat.Czxid != made.Stat.Czxid:
		w.Close()
	default:
		*cr.watch = w
	}
}

// list sends the listings that the options ask for.
func (cr *creation) list(s *session.Session) readsSent {
	return sendReads(s, cr.core.limits(), proto.OpGetChildren, cr.listed(nil))
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

// protectedPrefix, a UUID and a dash precede the name of a protected znode. The
// format is Curator's (org.apache.curator.framework.imps.ProtectedUtils).
const protectedPrefix = "_c_"

// A protection recognises the znode of one Create by the UUID in its name. The create may have been
// applied although its reply was lost.
type protection struct {
	id       string            // "_c_<uuid>-"
	session  int64             // of the create with the unknown outcome; 0 if none
	inFlight []<-chan struct{} // requests that no caller waits for

	claims *claims // KnownBySession: there is no id, and the znode is at the path; else nil
	before int64   // the transaction id that the session knew before the create
	epoch  *epoch  // of that path, before the last search; may be nil
	unlock func()  // to be called once the outcome is known; may be nil

	over    chan struct{}    // closed once the deletion is over; nil if there is none
	storeIn *<-chan struct{} // gets over; may be nil
}

// DeletionTo is for a create that is [Protected] or [KnownBySession]. If Create fails, and the client
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

// UntilKnown is for a create that is [Protected] or [KnownBySession], of a znode that is to stay. While the
// outcome of a request is unknown and its session lasts, Create continues until ctx ends, whatever the
// client's policy says, and whatever a server replies but [ErrNoAuth] and [ErrUnsupported]. Else it could end Create, and the client would delete the znode and have to create
// it again.
func UntilKnown() CreateOption {
	return createOption(func(cfg *createConfig) { cfg.given |= withPatience })
}

func newProtection() *protection { return &protection{id: newProtectedID()} }

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

// findEarlier looks for the znode that an earlier attempt may have left, and returns "" if there is none.
// If the Stat is asked for and may not be read, it returns ErrNoAuth.
func (cr *creation) findEarlier(ctx context.Context, s *session.Session) (string, Stat, error) {
	path, st, err := cr.protection.find(ctx, s, cr.path)
	if err == nil && path != "" && cr.stat != nil && st.Czxid == 0 {
		return "", Stat{}, ErrNoAuth
	}
	return path, st, err
}

// mayHaveCreated records that a request in the session may have created the znode, or may still create it.
// before is the transaction id that the session knew before that. The request has ended when done is closed.
func (g *protection) mayHaveCreated(session, before int64, done <-chan struct{}) {
	g.session, g.before = session, before
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

// search looks for the znode after a commit, because the server that replies now may lag behind the
// server of the create, as [earlierAttempts] says. The Stat is the zero value if the znode's ACL lets the client not read it.
func (g *protection) search(ctx context.Context, s *session.Session, path string) (string, Stat, error) {
	dir, _ := zkpath.Split(path)
	if err := session.Effect(ctx, s, requests.Prove()); err != nil {
		return "", Stat{}, err
	}
	if g.claims != nil {
		return g.searchAt(ctx, s, path)
	}
	candidates, err := g.candidates(ctx, s, dir)
	if err != nil {
		return "", Stat{}, err
	}
	for _, full := range candidates {
		found, err := session.Call(ctx, s, requests.Exists(full))
		if errors.Is(err, ErrNoAuth) {
			own, err := owns(ctx, s, full)
			if err != nil || own {
				return full, Stat{}, err
			}
			continue
		}
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
	return session.Effect(ctx, s, requests.Delete(path, AnyVersion))
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

// conclude records how Create ended. If Create failed, the znode is deleted if it exists or is
// still created.
func (g *protection) conclude(c *core, path string, err error) {
	if err == nil || g.session == 0 {
		g.finish()
		return
	}
	if g.storeIn != nil {
		g.over = make(chan struct{})
		*g.storeIn = g.over
	}
	x := deletion{session: g.session, path: path, protected: g, version: AnyVersion}
	if err := c.deletes.add(x, earlierAttempts{}); err != nil {
		c.deletes.logAbandoned(x, err)
		g.finish()
	}
}

// finish reports that the znode's outcome is known, or that no call will find it out. g may be nil.
func (g *protection) finish() {
	if g == nil {
		return
	}
	if g.unlock != nil {
		g.unlock()
	}
	if g.over != nil {
		close(g.over)
	}
}

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
func KnownBySession() CreateOption {
	return createOption(func(cfg *createConfig) { cfg.given |= withSession })
}

// claims are the paths at which a create that is known by its session is under way or has an unknown
// outcome.
type claims struct {
	mu   sync.Mutex
	held map[string]*claim
}

// A claim is the part of such a create that other creates of the client's have to know.
type claim struct {
	over   chan struct{} // closed, and the claim is deleted, once the outcome is known
	others []int64       // czxids of znodes that other creates have made at the path; guarded by claims.mu
}

// lock waits until no other create has claimed the path, and claims it until unlock is called.
func (cs *claims) lock(ctx context.Context, c *core, path string) (unlock func(), err error) {
	for {
		cs.mu.Lock()
		other := cs.held[path]
		if other == nil {
			own := &claim{over: make(chan struct{})}
			if cs.held == nil {
				cs.held = make(map[string]*claim)
			}
			cs.held[path] = own
			cs.mu.Unlock()
			return func() { cs.unlock(path, own) }, nil
		}
		cs.mu.Unlock()
		select {
		case <-other.over:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.ctx.Done():
			return nil, ErrClosed
		}
	}
}

func (cs *claims) unlock(path string, own *claim) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	delete(cs.held, path)
	close(own.over)
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
func (cs *claims) knows(path string, czxid int64) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	own := cs.held[path]
	return own != nil && slices.Contains(own.others, czxid)
}

// searchAt is search for a znode that is known by its session. What the session knew before the create
// is of earlier creates.
func (g *protection) searchAt(ctx context.Context, s *session.Session, path string) (string, Stat, error) {
	if g.epoch != nil {
		if err := g.epoch.read(ctx, s); err != nil {
			return "", Stat{}, err
		}
	}
	found, err := readStat(ctx, s, path)
	if errors.Is(err, ErrNoAuth) {
		if own, fault := owns(ctx, s, path); fault != nil || !own {
			return "", Stat{}, fault
		}
	}
	st := found.Stat
	switch {
	case err != nil || !found.Exists || st.EphemeralOwner != s.ID():
		return "", Stat{}, err
	case s.Zxid() < g.before:
		return "", Stat{}, errZxidFell
	case st.Czxid <= g.before || g.claims.knows(path, st.Czxid):
		return "", Stat{}, nil
	}
	return path, statOf(st), nil
}
