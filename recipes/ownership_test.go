package recipes_test

import (
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
	"github.com/docent-go/docent/testing/zkserver"
)

// A ledger knows from the server who made which znode.
type ledger struct {
	mu      sync.Mutex
	made    map[string]maker // of what exists
	faults  []string
	mine    map[int64]bool // sessions of the client
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
	return &ledger{lasting: lasting, made: map[string]maker{}, mine: map[int64]bool{}, created: make(chan string, 1000)}
}

// observe enters a transaction. No session may delete what another made, nor what was made by hand.
func (l *ledger) observe(x zkserver.Transaction) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, change := range x.Changes {
		switch change.Kind {
		case zkserver.Created:
			l.made[change.Path] = maker{x.By, l.byHand, change.Owner}
			if l.mine[x.By] && !l.byHand && (change.Owner == 0) == l.lasting {
				l.created <- change.Path
				l.lost.Store(l.losing.Swap(false) || l.lost.Load())
			}
		case zkserver.Deleted:
			was := l.made[change.Path]
			if l.mine[x.By] && x.Ended == 0 && was.owner != 0 && (!l.mine[was.session] || was.byHand) {
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
		if l.mine[m.owner] && !m.byHand {
			paths = append(paths, path)
		}
	}
	return paths
}

func (l *ledger) isMine(path string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	m, ok := l.made[path]
	return ok && l.mine[m.owner] && !m.byHand
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

// happenings are what happens to a call. Each returns a function that the test calls beside the call, with
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
	"its reply is lost, and another deletes it and makes it": func(t *testing.T, r *row) func(string) {
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
		restored := zkserver.Run(t, zkserver.WithObserver(r.ledger.observe))
		backup := clientOf(t, restored.Addr(), framework.WithDialer(restored.Dial))
		if r.root != "" {
			must.Get(backup.Create(t.Context(), r.root, nil, framework.WithParents()))(t)
		}
		return func(string) {
			r.mu.Lock()
			r.dials = restored
			r.mu.Unlock()
			r.srv.Cut()
			r.srv, r.other = restored, backup
			r.ledger.mu.Lock()
			clear(r.ledger.made)
			r.ledger.mu.Unlock()
		}
	},
}

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
	if r.znode == "" || r.lasting {
		return
	}
	r.ledger.setByHand(true)
	must.Get(r.client.Root().Create(t.Context(), r.root+r.znode, []byte("data"), framework.Ephemeral(), framework.WithParents()))(t)
	r.ledger.setByHand(false)
}

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
	r := &row{subject: s, ledger: newLedger(s.lasting)}
	r.srv = zkserver.Run(t, zkserver.WithObserver(r.ledger.observe))
	r.dials = r.srv
	r.other = clientOf(t, r.srv.Addr(), framework.WithDialer(r.srv.Dial))
	session, of := strings.CutSuffix(view, ", in session")
	listener := framework.WithStateListener(func(change framework.StateChange) {
		r.ledger.mu.Lock()
		defer r.ledger.mu.Unlock()
		r.ledger.mine[change.Session] = change.Session != 0
	})
	r.client, r.root = views[session](t, r.srv.Addr(), framework.WithDialer(r.dial), listener)
	if r.root != "" {
		must.Get(r.other.Create(t.Context(), r.root, nil, framework.WithParents()))(t)
	}
	must.OK(t, r.client.AwaitConnected(t.Context()))
	synctest.Wait()
	c := r.client
	if of {
		c = c.InSession(c.Session().ID)
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
	if err != nil {
		wantEnsemblePaths(t, err, r.root)
	}
	beside.Wait()
	<-time.After(30 * time.Second)
	if h != nil && err == nil && h.node() != "" && !r.ledger.isMine(r.root+h.node()) {
		t.Errorf("the call says that it has %s, which the client has not made; the ensemble has %v", h.node(), r.srv.Paths())
	}
	if h != nil && h.end != nil {
		ending, stop := context.WithTimeout(t.Context(), time.Minute)
		if err := h.end(ending); err != nil {
			wantEnsemblePaths(t, err, r.root)
		}
		stop()
	}
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

// TestOwnership has each recipe and each call that makes a znode in each view, and all that may happen to it.
func TestOwnership(t *testing.T) {
	t.Parallel()
	for _, s := range recipeSubjects {
		for view := range views {
			for _, kind := range []string{view, view + ", in session"} {
				for _, happening := range slices.Sorted(maps.Keys(happenings)) {
					t.Run(fmt.Sprintf("%s/%s/%s", s.name, kind, happening), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) { ownership(t, s, kind, happening) })
					})
				}
			}
		}
	}
}
