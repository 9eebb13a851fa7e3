package framework_test

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

func TestCreateMakesEveryKindOfZnode(t *testing.T) {
	t.Parallel()
	server := zktest.Run(t, zktest.WithSetting("extendedTypesEnabled", "true"), zktest.WithJVMFlags("-Dzookeeper.extendedTypesEnabled=true"))
	c := connect(t, server.Addr()+"/kinds")
	id := c.Session().ID
	for _, tc := range []struct {
		name  string
		opts  []framework.CreateOption
		path  string // pattern
		owner int64
	}{
		{"persistent", nil, `^/persistent$`, 0},
		{"ephemeral", []framework.CreateOption{framework.Ephemeral()}, `^/ephemeral$`, id},
		{"sequential", []framework.CreateOption{framework.Sequential()}, `^/sequential\d{10}$`, 0},
		{"both", []framework.CreateOption{framework.Ephemeral(), framework.Sequential()}, `^/both\d{10}$`, id},
		{"container", []framework.CreateOption{framework.Container()}, `^/container$`, 0},
		{"ttl", []framework.CreateOption{framework.TTL(time.Hour)}, `^/ttl$`, 0},
		{"sequential ttl", []framework.CreateOption{framework.TTL(time.Hour), framework.Sequential()}, `^/sequential ttl\d{10}$`, 0},
		{
			"protected",
			[]framework.CreateOption{framework.Ephemeral(), framework.Sequential(), framework.Protected()},
			`^/_c_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}-protected\d{10}$`, id,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var st framework.Stat
			path := mustCreate(t, c, "/"+tc.name, "data", append(tc.opts, framework.StatTo(&st))...)
			if !regexp.MustCompile(tc.path).MatchString(path) {
				t.Errorf("path %q, want it to match %s", path, tc.path)
			}
			found, ok, err := c.Exists(t.Context(), path)
			if err != nil || !ok || found != st {
				t.Errorf("Create told %+v, Exists %+v (%v, %v)", st, found, ok, err)
			}
			if st.EphemeralOwner != tc.owner || st.Czxid == 0 || st.Czxid != st.Mzxid {
				t.Errorf("owner %#x, czxid %#x, mzxid %#x", st.EphemeralOwner, st.Czxid, st.Mzxid)
			}
			wantData(t, c, path, "data")
		})
	}
}

// A create has its effect, and its reply is lost. The client goes on at a leader that was deposed before, and does
// not know it: that was never told of the znode, and replies to syncs and reads. The search is not misled.
func TestProtectedCreate_is_not_searched_for_at_a_deposed_leader(t *testing.T) {
	t.Parallel()
	for _, sequential := range [][]framework.CreateOption{nil, {framework.Sequential()}} {
		virtually(t, func(t *testing.T, srv *zkserver.Server) {
			c := virtual(t, srv, inTurn(srv, 0, 1, 0, 2), framework.WithRetry(retry.Never()), framework.WithSessionTimeout(20*time.Second))
			other := virtual(t, srv, inTurn(srv, 2))
			mustCreate(t, c, "/p", "")
			id := c.Session().ID
			srv.Frontend(0).Isolate()
			srv.Elect()
			srv.Frontend(0).Cut()
			sleep(time.Second)
			lost := srv.Rules().Add(fault.Rule{Session: id, Op: fault.Create, Action: fault.DropReply})
			_, err := c.Create(t.Context(), "/p/x", nil, append(sequential, framework.Ephemeral(), framework.Protected())...)
			wantErr(t, "Create", err, framework.ErrUnknownOutcome)
			sleep(time.Second)
			wantEqual(t, "replies lost", lost.Hits(), 1)
			wantEqual(t, "znodes at the quorum", len(children(t, other, "/p")), 1)
			sleep(30 * time.Second)
			wantEqual(t, "session", c.Session().ID, id)
			wantEqual(t, "deletions that are left", c.PendingDeletes(), 0)
			wantEqual(t, "znodes that are left", len(children(t, other, "/p")), 0)
		}, zkserver.WithFrontends(3), zkserver.WithLeader(0))
	}
}

// A protected znode whose ACL lets no client read it is found after a lost reply, because it is one of the
// session's own. Its Stat can't be read on servers whose exists needs READ: then Create fails, and leaves
// no znode.
func TestProtectedCreate_of_a_znode_that_may_not_be_read(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"3.6.0", zkserver.DefaultVersion, "3.8.4", "3.9.6"} {
		for name, opts := range map[string][]framework.CreateOption{
			"found": nil, "its Stat is asked for": {framework.StatTo(new(framework.Stat))},
		} {
			runVirtually(t, version+" "+name, func(t *testing.T, srv *zkserver.Server) {
				c := virtual(t, srv)
				session := c.Session().ID
				must.Get(c.Create(t.Context(), "/dir", nil))(t)
				srv.Rules().Add(fault.Rule{Op: fault.Create, Path: "/dir/*", Action: fault.DropReply})
				ctx := within(t, time.Minute)
				path, err := c.Create(ctx, "/dir/n", nil, append(opts, framework.Ephemeral(), framework.Protected(), unreadable)...)
				want := 1
				if opts != nil && (version == "3.8.4" || version == "3.9.6") {
					want = 0
					wantErr(t, "create with StatTo", err, framework.ErrNoAuth)
				} else if err != nil || !strings.HasPrefix(path, "/dir/_c_") {
					t.Errorf("create: %q, %v; want the znode's path", path, err)
				}
				zktest.Eventually(t, time.Minute, "the number of znodes", func() bool { return len(children(t, c, "/dir")) == want })
				wantEqual(t, "session", c.Session().ID, session)
			}, zkserver.WithVersion(version))
		}
	}
}

// The session ends before the client could look for its znode: it makes another, in the next session.
func TestProtectedCreate_with_a_znode_of_another_session(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtual(t, srv)
		mustCreate(t, c, "/d", "")
		id := c.Session().ID
		dropped := srv.Rules().Add(fault.Rule{Session: id, Op: fault.Create, Action: fault.DropReply})
		srv.Refuse()
		var st framework.Stat
		done := background(func() error {
			return last(c.Create(t.Context(), "/d/lock-", nil, framework.Ephemeral(), framework.Sequential(), framework.Protected(), framework.StatTo(&st)))
		})
		await(t, dropped.Hit(), "the reply is dropped")
		check(t, srv.Expire(id))
		srv.Accept()
		must.OK(t, <-done)
		if now := c.Session().ID; st.EphemeralOwner != now || now == id {
			t.Errorf("a znode of session %#x, want the present session %#x", st.EphemeralOwner, now)
		}
		wantEqual(t, "znodes", len(children(t, c, "/d")), 1)
	})
}

// Servers remove parents that have no children any more.
func TestCreateMakesParentsAgainThatAreReaped(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtual(t, srv)
		for range 3 {
			node := mustCreate(t, c, "/reaped/deep/node-", "", framework.Ephemeral(), framework.Sequential())
			must.OK(t, c.Delete(t.Context(), node))
			sleep(10 * time.Minute)
			wantExists(t, c, "/reaped", false)
		}
	})
}

// A create whose parent is missing takes one round trip more. A search for the first parent that
// exists begins only if the parent of the parent is missing, too.
func TestCreate_makes_missing_parents_in_few_requests(t *testing.T) {
	const roundTrip = time.Millisecond
	create, exists := fault.Create, fault.Exists
	for path, want := range map[string]struct {
		roundTrips int
		requests   []fault.Op
	}{
		"/n":       {1, []fault.Op{create}},
		"/a/n":     {2, []fault.Op{create, create, create}},
		"/a/b/n":   {4, []fault.Op{create, create, create, create, create, create}},
		"/a/b/c/n": {6, []fault.Op{create, create, create, exists, create, create, create, create}},
	} {
		runSynctest(t, path, func(t *testing.T) {
			srv := zkserver.Run(t, zkenv.DrawVersion(t)...)
			proxy := newProxy(t, srv)
			proxy.SetLatency(roundTrip)
			c := connect(t, srv.Addr(), framework.WithDialer(proxy.Dial))
			must.Get2(c.Exists(t.Context(), "/"))(t) // the first create of a session asks what the server has applied
			proxy.ResetRequests()
			begun := time.Now()
			must.Get(c.Create(t.Context(), path, nil, framework.WithParents()))(t)
			wantEqual(t, "time that it took", time.Since(begun), time.Duration(want.roundTrips)*roundTrip)
			var sent []fault.Op
			for _, r := range proxy.Requests() {
				sent = append(sent, r.Op)
			}
			wantList(t, "sent", sent, want.requests)
		})
	}
}

// A znode above the missing parents that may not be read exists, whatever a server of any version replies
// to exists.
func TestCreate_makes_parents_below_a_znode_that_may_not_be_read(t *testing.T) {
	for _, version := range []string{"3.6.0", zkserver.DefaultVersion, "3.8.4", "3.9.6"} {
		runVirtually(t, version, func(t *testing.T, srv *zkserver.Server) {
			c := virtual(t, srv)
			must.Get(c.Create(t.Context(), "/hidden", nil, unreadable))(t)
			check(t, last(c.Create(t.Context(), "/hidden/a/b/c/n", nil, framework.WithParents())))
		}, zkserver.WithVersion(version))
	}
}

// TestCreateTakesOneRoundTrip withholds the reply to the create until its listing has been asked for.
func TestCreateTakesOneRoundTrip(t *testing.T) {
	t.Parallel()
	proxy := zkproxy.Run(t, zktest.Shared(t).Addr())
	c := newClient(t, proxy.Addr())
	dir := mustCreate(t, c, fresh(t)+"-pipeline", "")
	stuck := proxy.Rules().Add(fault.Rule{Op: fault.Create, Path: dir + "/*", Action: fault.HoldReply})
	proxy.ResetRequests()
	var names []string
	created := background(func() error { return last(c.Create(t.Context(), dir+"/n", nil, framework.ListTo("", &names))) })
	await(t, stuck.Hit(), "the create")
	zktest.Eventually(t, patience, "it is asked for before the create is answered", func() bool { return proxy.Count(fault.GetChildren) == 1 })
	stuck.Release()
	must.OK(t, <-created)
	wantList(t, "the list", names, []string{"n"})
}

// The list is nil if it could not come with the create.
func TestCreate_without_its_list(t *testing.T) {
	t.Parallel()
	proxy := zkproxy.Run(t, zktest.Shared(t).Addr())
	c := newClient(t, proxy.Addr())
	dir := mustCreate(t, c, fresh(t)+"-nil", "")
	for _, tc := range []struct {
		path string
		opts []framework.CreateOption
		lost bool // the reply, after which the znode is found
		want error
	}{
		{dir + "/missing/n", nil, false, framework.ErrNoNode},
		{dir + "/n", []framework.CreateOption{framework.Ephemeral(), framework.Protected()}, true, nil},
		{dir + "/n", []framework.CreateOption{framework.Ephemeral(), framework.KnownBySession()}, true, nil},
	} {
		names := []string{"from before"}
		if tc.lost {
			proxy.Rules().Add(fault.Rule{Op: fault.Create, Path: dir + "/*", Action: fault.DropReply})
		}
		wantErr(t, tc.path, last(c.Create(t.Context(), tc.path, nil, append(tc.opts, framework.ListTo("", &names))...)), tc.want)
		if names != nil {
			t.Errorf("%s: the list %v, want nil", tc.path, names)
		}
	}
}

// Each create of one path has a listing of its own, taken after it, and a Stat of its own.
func TestCreatesOfOnePathAtOnce(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		const creates = 50
		c := virtual(t, srv)
		dir := fresh(t)
		mustCreate(t, c, dir, "")
		var wg sync.WaitGroup
		for range creates {
			wg.Go(func() {
				var names []string
				var st framework.Stat
				path, err := c.Create(t.Context(), dir+"/a-", nil, framework.Sequential(), framework.ListTo("", &names), framework.StatTo(&st))
				if err != nil {
					t.Error(err)
					return
				}
				if !slices.Contains(names, strings.TrimPrefix(path, dir+"/")) {
					t.Errorf("%s is not in its own listing of %d names", path, len(names))
				}
				if _, read, err := c.Get(t.Context(), path); err != nil || read.Czxid != st.Czxid {
					t.Errorf("%s has czxid %d, its Stat says %d (%v)", path, read.Czxid, st.Czxid, err)
				}
			})
		}
		wg.Wait()
	})
}

// A create that the client can find again is cancelled while its request is under way: the znode goes, and the next
// create of the path waits for that.
func TestACancelledCreateLeavesNoZnode(t *testing.T) {
	t.Parallel()
	dirs := numbered("/cancelled", 2)
	known := func(ctx context.Context, c *framework.Client, opts ...framework.CreateOption) error {
		return last(c.Create(ctx, dirs[0]+"/known", []byte("same"), knownBySession(opts...)...))
	}
	creates := map[string]func(context.Context, *framework.Client, ...framework.CreateOption) error{
		"protected": func(ctx context.Context, c *framework.Client, _ ...framework.CreateOption) error {
			return last(c.Create(ctx, dirs[0]+"/lock-", nil, framework.Ephemeral(), framework.Sequential(), framework.Protected()))
		},
		"known by session": known,
		"several": func(ctx context.Context, c *framework.Client, _ ...framework.CreateOption) error {
			return last(c.CreateAll(ctx, contenders(dirs)...))
		},
	}
	for name, tc := range map[string]struct {
		action fault.Action
		cut    bool
	}{
		"its reply comes later":   {fault.HoldReply, false},
		"its reply never comes":   {fault.HoldReply, true},
		"it is applied later":     {fault.HoldRequest, false},
		"its reply is lost":       {fault.DropReply, false},
		"its connection is ended": {fault.CutBefore, false},
	} {
		for kind, create := range creates {
			runVirtually(t, kind+", "+name, func(t *testing.T, srv *zkserver.Server) {
				c, observer := virtual(t, srv, framework.WithSessionTimeout(20*time.Second)), virtual(t, srv)
				for _, dir := range dirs {
					mustCreate(t, observer, dir, "")
				}
				op := fault.Create
				if kind == "several" {
					op = fault.Multi
				}
				stuck := srv.Rules().Add(fault.Rule{Op: op, Action: tc.action})
				deletes := srv.Rules().Add(fault.Rule{Op: fault.Delete, Action: fault.Pass, Times: fault.Forever})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				srv.Refuse()
				first := background(func() error { return create(ctx, c) })
				await(t, stuck.Hit(), "the create")
				synctest.Wait()
				cancel()
				wantErr(t, "the create", <-first, context.Canceled, framework.ErrUnknownOutcome)
				if c.PendingDeletes() == 0 {
					t.Error("nothing is to be deleted")
				}
				if tc.cut {
					srv.Cut()
				}
				srv.Accept()
				var st framework.Stat
				next := make(<-chan error)
				if kind == "known by session" {
					next = background(func() error { return known(t.Context(), c, framework.StatTo(&st)) })
					synctest.Wait()
				}
				stuck.Release()
				if kind == "known by session" {
					wantErr(t, "the create that follows", <-next, nil)
					wantStat(t, c, dirs[0]+"/known", st)
					mustDelete(t, c, dirs[0]+"/known")
				}
				zktest.Eventually(t, patience, "the deletion is done", func() bool { return c.PendingDeletes() == 0 })
				for _, dir := range dirs {
					wantList(t, "znodes that are left", children(t, observer, dir), nil)
				}
				if kind == "protected" && tc.action == fault.HoldReply {
					wantEqual(t, "deletions that were sent", deletes.Hits(), 1)
				}
			})
		}
	}
}
