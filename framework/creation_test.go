package framework_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/zkpath"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

func knownBySession(more ...framework.CreateOption) []framework.CreateOption {
	return append(more, framework.Ephemeral(), framework.KnownBySession())
}

// TestKnownBySessionTakesNothingForItsOwn has another znode at the path when the
// create is tried again: its refusal leaves no doubt.
func TestKnownBySessionTakesNothingForItsOwn(t *testing.T) {
	t.Parallel()
	server := zktest.Shared(t)
	proxy := zkproxy.Run(t, server.Addr())
	own, other := newClient(t, proxy.Addr()), newClient(t, server.Addr())
	for name, in := range map[string]struct {
		creator *framework.Client
		data    string
		opts    []framework.CreateOption
	}{
		"another session's with the same data": {other, "7f", []framework.CreateOption{framework.Ephemeral()}},
		"nobody's with the same data":          {own, "7f", nil},
		"the own session's with other data":    {own, "80", []framework.CreateOption{framework.Ephemeral()}},
		"the own session's with the same data": {own, "7f", []framework.CreateOption{framework.Ephemeral()}},
	} {
		path := fresh(t) + "-taken"
		mustCreate(t, in.creator, path, in.data, in.opts...)
		lost := proxy.Rules().Add(fault.Rule{Op: fault.Create, Path: path, Action: fault.DropReply})
		_, err := own.Create(t.Context(), path, []byte("7f"), knownBySession()...)
		wantErr(t, name, err, framework.ErrNodeExists)
		if errors.Is(err, framework.ErrUnknownOutcome) || lost.Hits() != 1 {
			t.Errorf("%s: %v with %d replies lost; want it to be certain after one", name, err, lost.Hits())
		}
		wantData(t, other, path, in.data)
	}
}

// The reply to a create is lost. Before the client is connected again, another client writes to the znode, as
// any client may that has seen it. The znode remains the create's own: the create succeeds, or the znode goes.
func TestKnownBySessionWhateverIsWrittenToTheZnode(t *testing.T) {
	var version int32
	for name, opts := range map[string][]framework.CreateOption{
		"plain":      knownBySession(),
		"with epoch": knownBySession(framework.WithEpoch(&version)),
	} {
		for _, withdrawn := range []bool{false, true} {
			runVirtually(t, fmt.Sprintf("%s, withdrawn %v", name, withdrawn), func(t *testing.T, srv *zkserver.Server) {
				c, other := virtual(t, srv), virtual(t, srv)
				must.Get(c.Create(t.Context(), zkpath.Epoch("/x"), nil))(t)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var st framework.Stat
				op := fault.Create
				if name == "with epoch" {
					op = fault.Multi
				}
				held := srv.Rules().Add(fault.Rule{Op: op, Path: "/x", Action: fault.HoldReply})
				done := background(func() error { return last(c.Create(ctx, "/x", []byte("7f"), append(opts, framework.StatTo(&st))...)) })
				<-held.Hit()
				must.Get(other.Set(t.Context(), "/x", []byte("written"), framework.AnyVersion))(t)
				want := error(nil)
				if withdrawn {
					cancel()
					want = context.Canceled
				}
				srv.Cut()
				wantErr(t, "Create", <-done, want)
				sleep(time.Minute)
				wantExists(t, other, "/x", !withdrawn)
				if !withdrawn {
					found, _ := must.Get2(other.Exists(t.Context(), "/x"))(t)
					wantEqual(t, "the Stat's czxid", st.Czxid, found.Czxid)
				}
			})
		}
	}
}

// A create is refused, and its caller has left before the reply came. The client has made a znode with the same
// data by another call: before that, or when the znode that was in the way had gone. The search for what the
// create has left must not take that.
func TestKnownBySessionLeavesWhatTheClientMadeOtherwise(t *testing.T) {
	for name, byHand := range map[string]func(ctx context.Context, c *framework.Client) error{
		"Create": func(ctx context.Context, c *framework.Client) error {
			return last(c.Create(ctx, "/x", []byte("7f"), framework.Ephemeral()))
		},
		"Txn": func(ctx context.Context, c *framework.Client) error {
			return last(c.Txn(ctx, framework.OpCreate("/x", []byte("7f"), framework.Ephemeral())))
		},
	} {
		for _, before := range []bool{false, true} {
			runVirtually(t, fmt.Sprintf("%s, before %v", name, before), func(t *testing.T, srv *zkserver.Server) {
				c, other := virtual(t, srv), virtual(t, srv)
				mustCreate(t, c, "/y", "") // the next creates are on their way at the same time
				if before {
					check(t, byHand(t.Context(), c))
				} else {
					mustCreate(t, other, "/x", "theirs")
				}
				held := srv.Rules().Add(fault.Rule{Op: fault.Create, Path: "/x", Action: fault.HoldReply})
				ctx, cancel := context.WithCancel(t.Context())
				refused := background(func() error { return last(c.Create(ctx, "/x", []byte("7f"), knownBySession()...)) })
				<-held.Hit()
				if !before {
					check(t, other.Delete(t.Context(), "/x"))
					made := background(func() error { return byHand(t.Context(), c) })
					defer func() { check(t, <-made) }()
				}
				synctest.Wait()
				cancel()
				wantErr(t, "the create that was refused", <-refused, context.Canceled)
				held.Release()
				sleep(time.Minute)
				wantEqual(t, "pending deletions", c.PendingDeletes(), 0)
				wantExists(t, other, "/x", true)
			})
		}
	}
}

// The client's policy makes one attempt. A create that continues until its outcome is known ends with its context,
// with its session, or with the znode.
func TestUntilKnown(t *testing.T) {
	for name, tt := range map[string]struct {
		ends func(t *testing.T, srv *zkserver.Server, id int64, cancel context.CancelFunc)
		want error
	}{
		"reconnection": {func(*testing.T, *zkserver.Server, int64, context.CancelFunc) {}, nil},
		"context":      {func(_ *testing.T, _ *zkserver.Server, _ int64, cancel context.CancelFunc) { cancel() }, context.Canceled},
		"session": {func(t *testing.T, srv *zkserver.Server, id int64, _ context.CancelFunc) {
			t.Helper()
			check(t, srv.Expire(id))
		}, framework.ErrSessionEnded},
	} {
		for kind, opt := range map[string]framework.CreateOption{"protected": framework.Protected(), "known by session": framework.KnownBySession()} {
			runVirtually(t, kind+", "+name, func(t *testing.T, srv *zkserver.Server) {
				c := virtual(t, srv, framework.WithRetry(retry.Never()), framework.WithSessionTimeout(20*time.Second))
				mustCreate(t, c, "/d", "")
				id := c.Session().ID
				lost := srv.Rules().Add(fault.Rule{Op: fault.Create, Path: "/d/*", Action: fault.DropReply})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				done := background(func() error {
					return last(c.InSession(id).Create(ctx, "/d/x", nil, framework.Ephemeral(), opt, framework.UntilKnown()))
				})
				<-lost.Hit()
				srv.Refuse()
				sleep(3 * time.Second)
				wantEqual(t, "calls that have given up", len(done), 0)
				tt.ends(t, srv, id, cancel)
				sleep(time.Second)
				srv.Accept()
				err := <-done
				wantErr(t, "Create", err, tt.want)
				sleep(time.Minute)
				left := 1
				if tt.want != nil {
					left = 0
				}
				wantEqual(t, "znodes", len(children(t, c, "/d")), left)
				if errors.Is(tt.want, context.Canceled) && !errors.Is(err, framework.ErrUnknownOutcome) {
					t.Errorf("Create: %v, want it to say that the outcome is unknown", err)
				}
			})
		}
	}
}

// The search for the znode is refused twice, by a server that has lost its leader: the outcome is still unknown, so
// a create that continues until it is known does. If the ACL lets no client read the znode, waiting doesn't help.
func TestUntilKnown_when_a_search_is_refused(t *testing.T) {
	for kind, opt := range map[string]framework.CreateOption{"protected": framework.Protected(), "known by session": framework.KnownBySession()} {
		for name, want := range map[string]error{"for a while": nil, "by the ACL": framework.ErrNoAuth} {
			runVirtually(t, kind+", "+name, func(t *testing.T, srv *zkserver.Server) {
				c := virtual(t, srv, framework.WithRetry(retry.Never()))
				mustCreate(t, c, "/d", "")
				srv.Rules().Add(fault.Rule{Op: fault.Create, Path: "/d/*", Action: fault.DropReply})
				var st framework.Stat
				opts := []framework.CreateOption{framework.Ephemeral(), opt, framework.UntilKnown(), framework.StatTo(&st)}
				if want != nil {
					opts = append(opts, unreadable)
				} else {
					refused := srv.Rules().Add(fault.Rule{Op: fault.Multi, Action: fault.Refuse, Code: fault.NotReadOnly, Times: 2})
					defer func() { wantEqual(t, "searches refused", refused.Hits(), 2) }()
				}
				path, err := c.Create(within(t, time.Minute), "/d/x", nil, opts...)
				wantErr(t, "Create", err, want)
				if left := children(t, c, "/d"); want == nil && (len(left) != 1 || path != "/d/"+left[0]) {
					t.Errorf("Create: %q, and the directory has %q", path, left)
				}
			}, zkserver.WithVersion("3.9.6"))
		}
	}
}

// A create that continues although its search is refused pauses as its policy says, and for a second when that allows
// no further retry. If its context ends in a pause, the error has the refusal, too.
func TestUntilKnown_pauses(t *testing.T) {
	for kind, opt := range map[string]framework.CreateOption{"protected": framework.Protected(), "known by session": framework.KnownBySession()} {
		runVirtually(t, kind, func(t *testing.T, srv *zkserver.Server) {
			c := virtual(t, srv, framework.WithRetry(retry.Times(2, 100*time.Millisecond)))
			mustCreate(t, c, "/d", "")
			srv.Rules().Add(fault.Rule{Op: fault.Create, Path: "/d/*", Action: fault.DropReply})
			refused := srv.Rules().Add(fault.Rule{Op: fault.Multi, Action: fault.Refuse, Code: fault.NotReadOnly, Times: fault.Forever})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := background(func() error {
				return last(c.Create(ctx, "/d/x", nil, framework.Ephemeral(), opt, framework.UntilKnown()))
			})
			<-refused.Hit()
			sleep(500 * time.Millisecond)
			wantEqual(t, "searches by the policy, whose first attempt sent the create", refused.Hits(), 2)
			sleep(time.Second)
			wantEqual(t, "searches after a pause of a second", refused.Hits(), 5)
			cancel()
			err := <-done
			for _, want := range []error{context.Canceled, framework.ErrReadOnly, framework.ErrUnknownOutcome} {
				wantErr(t, "Create", err, want)
			}
		})
	}
}

// The reply is lost, and another client's znode at the path may not be read. It is not the session's, so the create
// says that there is one, and nothing is left to be deleted.
func TestKnownBySessionBesideAZnodeThatMayNotBeRead(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c, other := virtual(t, srv), virtual(t, srv)
		mustCreate(t, other, "/x", "", unreadable)
		srv.Rules().Add(fault.Rule{Session: c.Session().ID, Op: fault.Create, Action: fault.DropReply})
		_, err := c.Create(t.Context(), "/x", nil, knownBySession()...)
		wantErr(t, "Create", err, framework.ErrNodeExists)
		sleep(time.Minute)
		wantEqual(t, "pending deletions", c.PendingDeletes(), 0)
	}, zkserver.WithVersion("3.9.6"))
}

func TestKnownBySessionWaitsNoLongerThanItsContext(t *testing.T) {
	t.Parallel()
	proxy := zkproxy.Run(t, zktest.Shared(t).Addr())
	c := newClient(t, proxy.Addr())
	path := fresh(t) + "-waits"
	stuck := proxy.Rules().Add(fault.Rule{Op: fault.Create, Path: path, Action: fault.HoldRequest})
	defer stuck.Release()
	first, cancel := context.WithCancel(t.Context())
	done := background(func() error { return last(c.Create(first, path, []byte("1"), knownBySession()...)) })
	await(t, stuck.Hit(), "the create")
	ctx, stop := context.WithCancel(t.Context())
	stop()
	_, err := c.Create(ctx, path, []byte("2"), knownBySession()...)
	wantErr(t, "Create behind one that is in doubt", err, context.Canceled)
	if errors.Is(err, framework.ErrUnknownOutcome) {
		t.Errorf("Create: %v: it was never sent", err)
	}
	cancel()
	wantErr(t, "Create", <-done, context.Canceled)
}

// TestWhenACreateIsOver: the function is called when the znode of a create that was withdrawn is gone, or the
// client has stopped its deletion. If a create leaves nothing behind, it is called before Create returns.
func TestWhenACreateIsOver(t *testing.T) {
	t.Parallel()
	for name, opt := range map[string]framework.CreateOption{"protected": framework.Protected(), "known by data": framework.KnownBySession()} {
		for _, closes := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", the client is closed"}[closes], func(t *testing.T) {
				t.Parallel()
				zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
					route, path := env.Route(t), fresh(t)+"-deletion"
					c := route.Client(t)
					over := make(chan bool, 1)
					opts := []framework.CreateOption{framework.Ephemeral(), opt, framework.WhenOver(func(gone bool) { over <- gone })}
					wantOver := func(gone bool) {
						t.Helper()
						select {
						case got := <-over:
							wantEqual(t, "gone", got, gone)
						default:
							t.Error("not over when Create returned, although it left nothing behind")
						}
					}
					created := must.Get(c.Create(t.Context(), path, nil, opts...))(t)
					wantOver(false)
					wantErr(t, "below no parent", last(c.Create(t.Context(), path+"/none/n", nil, opts...)), framework.ErrNoNode)
					wantOver(true)
					wantErr(t, "a bad path", last(c.Create(t.Context(), "n", nil, opts...)), framework.ErrInvalidPath)
					wantOver(true)
					must.OK(t, c.Delete(t.Context(), created))
					held := route.Rules().Add(fault.Rule{Op: fault.Create, Action: fault.HoldReply})
					ctx, cancel := context.WithCancel(t.Context())
					go func() { <-held.Hit(); cancel() }()
					if _, err := c.Create(ctx, path, nil, opts...); err == nil {
						t.Fatal("a create that was withdrawn: no error")
					}
					if closes {
						must.OK(t, c.Close())
						wantEqual(t, "gone", must.Receive(t, over, "the end of the deletion"), false)
						return
					}
					if len(over) != 0 {
						t.Error("the deletion is over before the create is")
					}
					held.Release()
					wantEqual(t, "gone", must.Receive(t, over, "the end of the deletion"), true)
					names, _ := must.Get2(c.Children(t.Context(), "/"))(t)
					for _, name := range names {
						if strings.HasSuffix("/"+name, path) {
							t.Errorf("%s exists after the end of its deletion", name)
						}
					}
				}, zkenv.Only("nothing of it depends on the server", zkenv.Embedded, zkenv.Standalone))
			})
		}
	}
}
