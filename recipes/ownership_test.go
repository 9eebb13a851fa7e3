package recipes_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
)

// A ledger knows from the server who made which znode.
type ledger struct {
	mu      sync.Mutex
	made    map[string]maker // of what exists
	ever    map[string]bool  // paths at which the client has made a znode
	only    int64            // the session in which the client may make ephemeral znodes; 0 for any
	faults  []string
	others  map[int64]bool // sessions that are not the client's
	world   int            // 1 once the ensemble has been restored
	created chan string    // the paths of the client's znodes
	byHand  bool           // the client's creations are the test's
	lasting bool           // tell of znodes that belong to no session
	losing  atomic.Bool    // the reply to the next creation is to be lost
	lost    atomic.Bool    // no connection of the client lives
}

// A maker is who made a znode.
type maker struct {
	session int64
	byHand  bool
	owner   int64 // 0 for a znode that lasts
}

func newLedger(lasting bool) *ledger {
	return &ledger{lasting: lasting, made: map[string]maker{}, ever: map[string]bool{}, others: map[int64]bool{}, created: make(chan string, 1000)}
}

// isMine reports whether the session is one of the client's. It needs mu.
func (l *ledger) isMine(session int64) bool { return session > 0 && !l.others[session] } // containers have a negative owner

// admit notes a session that is not the client's.
func (l *ledger) admit(t *testing.T, other *framework.Client) {
	t.Helper()
	must.OK(t, other.AwaitConnected(t.Context()))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.others[other.Session().ID] = true
}

// observer returns what enters the transactions of the ensemble, world 0, or of the one that it is restored to, world 1.
func (l *ledger) observer(world int) func(zkserver.Transaction) {
	return func(x zkserver.Transaction) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if world == l.world {
			l.enter(x)
		}
	}
}

// restore goes over to the restored ensemble, in which the client has made nothing.
func (l *ledger) restore() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.world++
	clear(l.made)
}

// enter enters a transaction. No session may delete what another made, nor what was made by hand. It needs mu.
func (l *ledger) enter(x zkserver.Transaction) {
	for _, change := range x.Changes {
		switch change.Kind {
		case zkserver.Created:
			l.made[change.Path] = maker{x.By, l.byHand, change.Owner}
			l.ever[change.Path] = l.ever[change.Path] || l.isMine(x.By)
			if l.isMine(x.By) && change.Owner > 0 && l.only != 0 && x.By != l.only {
				l.faults = append(l.faults, fmt.Sprintf("a view of session %#x made %s in session %#x", l.only, change.Path, x.By))
			}
			if l.isMine(x.By) && !l.byHand && (change.Owner <= 0) == l.lasting {
				l.created <- change.Path
				l.lost.Store(l.losing.Swap(false) || l.lost.Load())
			}
		case zkserver.Deleted:
			was := l.made[change.Path]
			if l.isMine(x.By) && x.Ended == 0 && was.owner > 0 && (!l.isMine(was.session) || was.byHand) {
				l.faults = append(l.faults, fmt.Sprintf("the client deleted %s of session %#x, made by hand: %v", change.Path, was.session, was.byHand))
			}
			delete(l.made, change.Path)
		}
	}
}

// left returns the znodes of the client's sessions that the client has left.
func (l *ledger) left() (paths []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for path, m := range l.made {
		if l.isMine(m.owner) && !m.byHand {
			paths = append(paths, path)
		}
	}
	return paths
}

func (l *ledger) has(path string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	m, ok := l.made[path]
	return ok && l.isMine(m.owner) && !m.byHand
}

// A row is one combination of the table, while it runs.
type row struct {
	subject
	srv    *zkserver.Server
	other  *framework.Client // without a view
	client *framework.Client // the view
	root   string
	ledger *ledger

	mu    sync.Mutex
	dials *zkserver.Server // by the client
}

func (r *row) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if r.ledger.lost.Load() {
		return nil, errors.New("the network is down")
	}
	r.mu.Lock()
	srv := r.dials
	r.mu.Unlock()
	conn, err := srv.Dial(ctx, network, addr)
	return losingConn{conn, &r.ledger.lost}, err
}

// happenings are what happens to a call. Each returns a function that the test calls next to the call, with
// the path in the ensemble of the first znode that the client has made.
var happenings = map[string]func(t *testing.T, r *row) (then func(made string)){
	"nothing": func(*testing.T, *row) func(string) { return nil },
	"its reply is lost": func(_ *testing.T, r *row) func(string) {
		return r.loseReply(func(string) {})
	},
	"written by another": func(t *testing.T, r *row) func(string) { return func(made string) { r.write(t, made) } },
	"its reply is lost, and another writes": func(t *testing.T, r *row) func(string) {
		return r.loseReply(func(made string) { r.write(t, made) })
	},
	"deleted and made by another": func(t *testing.T, r *row) func(string) { return func(made string) { r.replace(t, made) } },
	lostAndReplaced: func(t *testing.T, r *row) func(string) {
		return r.loseReply(func(made string) { r.replace(t, made) })
	},
	"made by hand by the same client": func(t *testing.T, r *row) func(string) { r.makeByHand(t); return nil },
	"its session ends": func(t *testing.T, r *row) func(string) {
		return func(string) { r.expire(t) }
	},
	"its reply is lost, and its session ends": func(t *testing.T, r *row) func(string) {
		return r.loseReply(func(string) { r.expire(t) })
	},
	"the ensemble is restored": func(t *testing.T, r *row) func(string) {
		restored := zkserver.Run(t, zkserver.WithObserver(r.ledger.observer(1)))
		backup := clientOf(t, restored.Addr(), framework.WithDialer(restored.Dial))
		r.ledger.admit(t, backup)
		if r.root != "" {
			must.Get(backup.Create(t.Context(), r.root, nil, framework.WithParents()))(t)
		}
		return func(string) {
			r.mu.Lock() // nothing is dialed until the ledger has gone over, too
			defer r.mu.Unlock()
			r.dials = restored
			r.srv.Cut()
			r.srv, r.other = restored, backup
			r.ledger.restore()
		}
	},
}

const lostAndReplaced = "its reply is lost, and another deletes it and makes it"

// loseReply has the reply lost to the request that makes the first znode, and then happen what then does
// before the client is connected again.
func (r *row) loseReply(then func(made string)) func(string) {
	r.ledger.losing.Store(true)
	return func(made string) {
		then(made)
		r.ledger.lost.Store(false)
	}
}

// A losingConn ends, and loses what it has not delivered, when the ledger says so.
type losingConn struct {
	net.Conn
	lost *atomic.Bool
}

func (c losingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.lost.Load() {
		return 0, errors.Join(io.ErrUnexpectedEOF, c.Close())
	}
	return n, err
}

func (r *row) write(t *testing.T, path string) {
	t.Helper()
	if _, err := r.other.Set(t.Context(), path, []byte("another's"), framework.AnyVersion); err != nil && !errors.Is(err, framework.ErrNoNode) {
		t.Error(err)
	}
}

func (r *row) replace(t *testing.T, path string) {
	t.Helper()
	if err := r.other.Delete(t.Context(), path); err != nil && !errors.Is(err, framework.ErrNoNode) && !errors.Is(err, framework.ErrNotEmpty) {
		t.Error(err)
	}
	var opts []framework.CreateOption
	if !r.lasting {
		opts = append(opts, framework.Ephemeral())
	}
	if _, err := r.other.Create(t.Context(), path, []byte("another's"), opts...); err != nil && !errors.Is(err, framework.ErrNodeExists) && !errors.Is(err, framework.ErrNoNode) {
		t.Error(err)
	}
}

func (r *row) makeByHand(t *testing.T) {
	t.Helper()
	if r.lasting {
		return
	}
	r.ledger.setByHand(true)
	must.Get(r.client.Root().Create(t.Context(), r.root+cmp.Or(r.znode, contender), []byte("data"), framework.Ephemeral(), framework.WithParents()))(t)
	r.ledger.setByHand(false)
}

// contender is the path of a znode as mutexes make them, for subjects whose names are drawn.
const contender = at + "/_c_00000000-0000-4000-8000-000000000000-lock-0000000000"

func (l *ledger) setByHand(byHand bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.byHand = byHand
}

func (r *row) expire(t *testing.T) {
	t.Helper()
	must.OK(t, r.srv.Expire(r.client.Session().ID))
}

// ownership is what each row must show, whatever happens:
//
//   - the call returns when its context ends, or before;
//   - its error names the path in the ensemble;
//   - what it says it has, exists, and a session of the client made it: its present one;
//   - the client deletes no ephemeral znode of another, and none that was made by hand;
//   - in the end, no znode of the client's sessions is left.
func ownership(t *testing.T, s subject, view, happening string) {
	t.Helper()
	r := &row{subject: s, ledger: newLedger(s.lasting)}
	r.srv = zkserver.Run(t, zkserver.WithObserver(r.ledger.observer(0)))
	r.dials = r.srv
	r.other = clientOf(t, r.srv.Addr(), framework.WithDialer(r.srv.Dial))
	r.ledger.admit(t, r.other)
	session, of := strings.CutSuffix(view, ", in session")
	r.client, r.root = views[session](t, r.srv.Addr(), framework.WithDialer(r.dial))
	if r.root != "" {
		must.Get(r.other.Create(t.Context(), r.root, nil, framework.WithParents()))(t)
	}
	must.OK(t, r.client.AwaitConnected(t.Context()))
	synctest.Wait()
	c := r.client
	if of {
		c = c.InSession(c.Session().ID)
		r.ledger.only = c.Session().ID
	}
	then := happenings[happening](t, r)
	var beside sync.WaitGroup
	if then != nil {
		limit := time.After(30 * time.Second) // some calls make no znode
		beside.Go(func() {
			select {
			case made := <-r.ledger.created:
				<-time.After(time.Millisecond)
				then(made)
			case <-limit:
			}
		})
	}
	call := s.open(t, c)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	begun := time.Now()
	h, err := call(ctx)
	if took := time.Since(begun); took > time.Minute+time.Second {
		t.Errorf("the call took %v", took)
	}
	if err != nil && (!s.several || strings.Contains(err.Error(), at)) {
		wantEnsemblePaths(t, err, r.root)
	}
	beside.Wait()
	<-time.After(30 * time.Second)
	r.checkHolding(t, h, err)
	<-time.After(time.Minute)
	if left := r.ledger.left(); len(left) > 0 && (!s.doubtful || err == nil) && !s.lasting {
		t.Errorf("the client has left %q; the call's error: %v", left, err)
	}
	if n := r.client.PendingDeletes(); n > 0 {
		t.Errorf("%d deletions are pending", n)
	}
	for _, fault := range r.ledger.faults {
		t.Error(fault)
	}
}

// checkHolding checks what the call says, and ends what it has begun.
func (r *row) checkHolding(t *testing.T, h *holding, err error) {
	t.Helper()
	if h == nil {
		return
	}
	if has := h.node; err == nil && has != nil && has() != "" && !r.ledger.has(r.root+has()) {
		t.Errorf("the call says that it has %s, which the client has not made; the ensemble has %v", has(), r.srv.Paths())
	}
	r.ledger.mu.Lock()
	for _, path := range h.made {
		if !r.ledger.ever[r.root+path] {
			t.Errorf("the call says that it has made %s, which it has not", path)
		}
	}
	r.ledger.mu.Unlock()
	if h.end == nil {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := h.end(ctx); err != nil {
		wantEnsemblePaths(t, err, r.root)
	}
}

// TestOwnership has each recipe and each call that makes a znode in each view, and all that may happen to it.
func TestOwnership(t *testing.T) {
	t.Parallel()
	rows := 0
	for _, s := range slices.Concat(recipeSubjects, frameworkSubjects) {
		for view := range views {
			for _, kind := range []string{view, view + ", in session"} {
				for _, happening := range slices.Sorted(maps.Keys(happenings)) {
					rows++
					t.Run(fmt.Sprintf("%s/%s/%s", s.name, kind, happening), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) { ownership(t, s, kind, happening) })
					})
				}
			}
		}
	}
	t.Logf("%d rows", rows)
}

// TestOwnershipOfNobody has each call while the client can only read: it fails, at the latest when its context
// ends, and leaves nothing, even when there is a quorum again.
func TestOwnershipOfNobody(t *testing.T) {
	t.Parallel()
	for _, s := range slices.Concat(recipeSubjects, frameworkSubjects) {
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zkserver.Run(t, zkserver.WithFrontends(3), zkserver.WithLeader(0), zkserver.WithSyncLimit(2), zkserver.WithReadOnlyMode(true))
				plain, root := views["namespace"](t, srv.Addr(), framework.WithDialer(srv.Dial), framework.WithReadOnly(), framework.WithSessionTimeout(40*time.Second))
				must.Get(plain.Create(t.Context(), "/", nil))(t)
				for _, f := range srv.Frontends()[:2] {
					f.Refuse()
					f.Isolate()
					f.Cut()
				}
				for plain.State() != framework.ReadOnly {
					<-time.After(time.Second)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				h, err := s.open(t, plain)(ctx)
				cancel()
				if err != nil && !s.several {
					wantEnsemblePaths(t, err, root)
				} else if err == nil && !s.readOnly {
					t.Error("the call has succeeded without a quorum")
				}
				for _, f := range srv.Frontends()[:2] {
					f.Accept()
					f.Heal()
				}
				for plain.State() != framework.Connected {
					<-time.After(time.Second)
				}
				if h != nil && h.end != nil {
					must.OK(t, h.end(t.Context()))
				}
				<-time.After(time.Minute)
				if left := must.Get(plain.Ephemerals(t.Context(), "/"))(t); len(left) > 0 {
					t.Errorf("the client has left %q", left)
				}
			})
		})
	}
}

// TestOwnershipOnServers has a share of the table on real servers too, whose bookkeeping is their own: what
// another client has made stays, and nothing of the client's does.
func TestOwnershipOnServers(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		for _, s := range slices.Concat(recipeSubjects, frameworkSubjects) {
			other := env.Client(t)
			for _, happening := range []string{"nothing", "written", "deleted and made"} {
				root := recipetest.Path(t) + "/" + strings.ReplaceAll(s.name+"-"+happening, " ", "-")
				plain := env.Client(t, framework.WithNamespace(root[1:]))
				must.Get(plain.Create(t.Context(), "/", nil, framework.WithParents()))(t)
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				h, err := s.open(t, plain)(ctx)
				must.OK(t, err)
				var path string
				if found := must.Get(plain.Ephemerals(ctx, "/"))(t); len(found) > 0 {
					path = found[0]
				}
				if h != nil && h.lease != nil && h.lease.Node() != "" { // a member of a partition has other znodes, too
					path = h.lease.Node()
				}
				var another framework.Stat
				switch {
				case path == "":
				case happening == "written":
					must.Get(other.Set(ctx, root+path, []byte("another's"), framework.AnyVersion))(t)
				case happening == "deleted and made":
					made := must.Get(other.Txn(ctx, framework.OpDelete(root+path, framework.AnyVersion),
						framework.OpCreate(root+path, nil, framework.Ephemeral()), framework.OpSet(root+path, nil, 0)))(t) // at once: its owner makes it again
					another = made[2].Stat
					if h.lease != nil {
						<-h.lease.Lost()
					}
				}
				if h != nil && h.end != nil {
					if err := h.end(ctx); err != nil {
						wantEnsemblePaths(t, err, root)
					}
				}
				if err := cmp.Or(plain.AwaitConnected(ctx), awaitNone(ctx, plain)); err != nil {
					t.Errorf("%s, %s: %v", s.name, happening, err)
				}
				if st, _, err := other.Exists(ctx, root+path); another.Czxid != 0 && (err != nil || st.Czxid != another.Czxid) {
					t.Errorf("%s: another's znode at %s: %+v, %v; made was %+v", s.name, path, st, err, another)
				}
				cancel()
			}
		}
	})
}

// awaitNone returns when the client has no znodes and no deletion pending.
func awaitNone(ctx context.Context, c *framework.Client) error {
	for {
		left, err := c.Ephemerals(ctx, "/")
		if err != nil {
			return fmt.Errorf("%q are left: %w", left, err)
		}
		if len(left) == 0 && c.PendingDeletes() == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%q are left", left)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
