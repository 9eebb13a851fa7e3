package framework_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
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
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/zkpath"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// The table of this file has every writing call, with every lost request or reply, and everything
// that another client may do before the client has a connection again. Whatever happened, the call
// has to tell the truth:
//
//   - nil: the write was applied, once;
//   - an error that wraps ErrUnknownOutcome: it was applied at most once;
//   - any other error: it was not applied.

// A tableWrite is a writing call of the table, on a znode in dir.
type tableWrite struct {
	name   string
	op     fault.Op // of the request that is lost
	exists bool     // the znode exists when the call begins
	do     func(in tableCall) error

	again     bool  // the call may be applied again once the effect is undone: the documented exception
	found     bool  // Idempotent: nil even if another client had the effect
	uncertain bool  // after a lost request, too, the outcome is unknown
	checks    bool  // it changes nothing
	refusal   error // of a repetition, which the error of a lost reply has to match
}

// A tableCall is how a client makes a call of the table.
type tableCall struct {
	tableRow
	ctx context.Context
	c   *framework.Client
}

// A tableRow is what a call of the table finds.
type tableRow struct {
	dir, path string
	st        framework.Stat // of the znode, if it exists
	epoch     int32          // of the znode, if it exists
}

// tableWrites returns the writing calls: Create with every valid combination of options, the others
// with all that changes a repetition.
func tableWrites(t testing.TB, c *framework.Client) []tableWrite {
	t.Helper()
	writes := tableCreates(c)
	for _, idempotent := range []bool{false, true} {
		suffix := ""
		var set []framework.SetOption
		var remove []framework.DeleteOption
		if idempotent {
			suffix, set, remove = "+Idempotent", append(set, framework.Idempotent()), append(remove, framework.Idempotent())
		}
		for name, version := range map[string]int32{"any": framework.AnyVersion, "0": 0} {
			writes = append(writes, tableWrite{
				name: "Set " + name + suffix, op: fault.SetData, exists: true, found: idempotent,
				do: func(in tableCall) error { return last(in.c.Set(in.ctx, in.path, []byte("ours"), version, set...)) },
			})
			for _, guaranteed := range []bool{false, true} {
				label, opts := "Delete "+name+suffix, append(slices.Clip(remove), framework.AtVersion(version))
				if guaranteed {
					label, opts = label+"+Guaranteed", append(opts, framework.Guaranteed())
				}
				writes = append(writes, tableWrite{
					name: label, op: fault.Delete, exists: true, found: idempotent,
					do: func(in tableCall) error { return in.c.Delete(in.ctx, in.path, opts...) },
				}, tableWrite{
					name: label + "+CreatedBy", op: fault.Delete, exists: true, found: idempotent,
					do: func(in tableCall) error {
						return in.c.Delete(in.ctx, in.path, append(opts, framework.CreatedBy(in.st.Czxid))...)
					},
				})
			}
		}
		writes = append(writes, tableWrite{
			name: "Delete at epoch" + suffix, op: fault.Multi, exists: true, found: idempotent,
			do: func(in tableCall) error {
				return in.c.Delete(in.ctx, in.path, append(remove, framework.AtEpoch(in.epoch), framework.CreatedBy(in.st.Czxid))...)
			},
		})
	}
	for name, version := range map[string]int32{"any": framework.AnyVersion, "0": 0} {
		writes = append(writes, tableWrite{
			name: "SetACL " + name, op: fault.SetACL, exists: true, uncertain: version == framework.AnyVersion,
			do: func(in tableCall) error { return last(in.c.SetACL(in.ctx, in.path, tableACL(), version)) },
		})
	}
	return append(append(writes, tableTxns()...),
		tableWrite{
			// It means the znode that exists when it begins.
			name: "Discard", op: fault.Delete, exists: true, found: true,
			do: func(in tableCall) error { in.c.Discard(in.path); return nil },
		},
		tableWrite{
			name: "DeleteTree", op: fault.Delete, exists: true, again: true, found: true,
			do: func(in tableCall) error { return in.c.DeleteTree(in.ctx, in.path) },
		},
		tableWrite{
			name: "CreateOrSet of a znode", op: fault.SetData, exists: true,
			do: func(in tableCall) error { return last(in.c.CreateOrSet(in.ctx, in.path, []byte("ours"))) },
		},
		tableWrite{
			name: "CreateOrSet of none", op: fault.Create,
			do: func(in tableCall) error { return last(in.c.CreateOrSet(in.ctx, in.path, []byte("ours"))) },
		},
		tableWrite{
			name: "CreateAll", op: fault.Multi, again: true,
			do: func(in tableCall) error {
				return last(in.c.CreateAll(in.ctx,
					framework.OpCreate(in.path, []byte("ours"), framework.Ephemeral(), framework.Protected()),
					framework.OpCreate(in.path+"-", []byte("ours"), framework.Ephemeral(), framework.Protected(), framework.Sequential())))
			},
		},
	)
}

// tableACL differs from the ACL of new znodes, and allows everything, too.
func tableACL() []acl.Entry {
	return []acl.Entry{{Perms: acl.All, Scheme: "world", ID: "anyone"}, {Perms: acl.Read, Scheme: "ip", ID: "127.0.0.1"}}
}

// tableCreates returns Create with every combination of options that is valid.
func tableCreates(c *framework.Client) []tableWrite {
	options := []struct {
		name string
		opt  framework.CreateOption
	}{
		{"Ephemeral", framework.Ephemeral()},
		{"Sequential", framework.Sequential()},
		{"Container", framework.Container()},
		{"TTL", framework.TTL(time.Hour)},
		{"Protected", framework.Protected()},
		{"KnownBySession", framework.KnownBySession()},
		{"Idempotent", framework.Idempotent()},
		{"WithParents", framework.WithParents()},
		{"WithEpoch", framework.WithEpoch(new(int32))},
	}
	var writes []tableWrite
	for set := range 1 << len(options) {
		var opts []framework.CreateOption
		var names []string
		has := make(map[string]bool)
		for i, o := range options {
			if set&(1<<i) != 0 {
				opts, names, has[o.name] = append(opts, o.opt), append(names, o.name), true
			}
		}
		if c.CheckCreate("/x", nil, opts...) != nil {
			continue
		}
		w := tableWrite{
			name: "Create " + strings.Join(names, "+"), op: fault.Create,
			again: has["Protected"] || has["KnownBySession"], found: has["Idempotent"],
			uncertain: has["Sequential"] && !has["Protected"],
			do:        func(in tableCall) error { return last(in.c.Create(in.ctx, in.path, []byte("ours"), opts...)) },
		}
		if has["WithEpoch"] {
			w.op = fault.Multi
		}
		if !w.again && !w.found && !w.uncertain {
			w.refusal = framework.ErrNodeExists
		}
		writes = append(writes, w)
	}
	return writes
}

func tableTxns() []tableWrite {
	var writes []tableWrite
	for name, tt := range map[string]struct {
		exists, checks bool
		ops            func(in tableCall) []framework.TxnOp
	}{
		"check": {true, true, func(in tableCall) []framework.TxnOp { return []framework.TxnOp{framework.OpCheck(in.path, -1)} }},
		"set":   {true, false, func(in tableCall) []framework.TxnOp { return []framework.TxnOp{framework.OpSet(in.path, nil, -1)} }},
		"check set 0": {true, false, func(in tableCall) []framework.TxnOp {
			return []framework.TxnOp{framework.OpCheck(in.path, 0), framework.OpSet(in.path, nil, 0)}
		}},
		"delete": {true, false, func(in tableCall) []framework.TxnOp { return []framework.TxnOp{framework.OpDelete(in.path, -1)} }},
		"create": {false, false, func(in tableCall) []framework.TxnOp { return []framework.TxnOp{framework.OpCreate(in.path, nil)} }},
		"create sequential": {false, false, func(in tableCall) []framework.TxnOp {
			return []framework.TxnOp{framework.OpCreate(in.path, nil, framework.Ephemeral(), framework.Sequential())}
		}},
		"at epoch set": {true, false, func(in tableCall) []framework.TxnOp {
			return []framework.TxnOp{framework.OpCheck(in.path, framework.AnyVersion, framework.AtEpoch(in.epoch)), framework.OpSet(in.path, nil, -1)}
		}},
	} {
		writes = append(writes, tableWrite{
			name: "Txn " + name, op: fault.Multi, exists: tt.exists, checks: tt.checks, uncertain: !tt.checks, found: tt.checks,
			do: func(in tableCall) error { return last(in.c.Txn(in.ctx, tt.ops(in)...)) },
		})
	}
	return writes
}

// tableOthers returns what another client may do while the client has no connection. It acts on the
// znodes that the call is about: the given one, or those that the call created in its directory.
func tableOthers() map[string]func(t testing.TB, c *framework.Client, in tableRow, w tableWrite) {
	remove := func(t testing.TB, c *framework.Client, in tableRow) {
		for _, path := range tableZnodes(t, c, in) {
			if err := c.Delete(t.Context(), path); err != nil && !errors.Is(err, framework.ErrNoNode) {
				t.Error(err)
			}
		}
	}
	return map[string]func(t testing.TB, c *framework.Client, in tableRow, w tableWrite){
		"nothing": func(testing.TB, *framework.Client, tableRow, tableWrite) {},
		"same": func(t testing.TB, c *framework.Client, in tableRow, w tableWrite) {
			if err := w.do(tableCall{in, t.Context(), c}); err != nil && !errors.As(err, new(*framework.OpError)) {
				t.Error(err) // refused: the client was first
			}
		},
		"write": func(t testing.TB, c *framework.Client, in tableRow, _ tableWrite) {
			for _, path := range tableZnodes(t, c, in) {
				must.Get(c.Set(t.Context(), path, []byte("theirs"), framework.AnyVersion))(t)
			}
		},
		"delete": func(t testing.TB, c *framework.Client, in tableRow, _ tableWrite) { remove(t, c, in) },
		"delete and create": func(t testing.TB, c *framework.Client, in tableRow, _ tableWrite) {
			remove(t, c, in)
			must.Get(c.Create(t.Context(), in.path, []byte("theirs")))(t)
		},
		"create elsewhere": func(t testing.TB, c *framework.Client, in tableRow, _ tableWrite) {
			must.Get(c.Create(t.Context(), in.dir+"/elsewhere-", nil, framework.Sequential()))(t)
		},
	}
}

// tableZnodes returns the znodes in the row's directory that the call is about.
func tableZnodes(t testing.TB, c *framework.Client, in tableRow) []string {
	t.Helper()
	var paths []string
	for _, name := range children(t, c, in.dir) {
		if path := zkpath.Join(in.dir, name); path != zkpath.Epoch(in.path) {
			paths = append(paths, path)
		}
	}
	return paths
}

// A tableServer is the server of the table, and counts what the calls come to.
type tableServer struct {
	*zkserver.Server
	observer *framework.Client
	other    *framework.Client

	mu     sync.Mutex // guards following
	dir    string
	exists bool // see tableWrite
	n      int
}

// withTable runs fn in virtual time with the server of the table. The options are of the other client.
func withTable(t *testing.T, fn func(t *testing.T, srv *tableServer), opts ...framework.Option) {
	t.Helper()
	table := new(tableServer)
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		table.Server, table.observer, table.other = srv, virtual(t, srv), virtual(t, srv, opts...)
		fn(t, table)
	}, zkserver.WithObserver(table.count))
}

// begin has the server count the effects that a client under test has in a directory.
func (srv *tableServer) begin(dir string, exists bool) {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	srv.dir, srv.exists, srv.n = dir, exists, 0
}

// count counts a transaction of the client under test that had an effect.
func (srv *tableServer) count(x zkserver.Transaction) {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	if srv.dir != "" && x.By != srv.observer.Session().ID && x.By != srv.other.Session().ID && slices.ContainsFunc(x.Changes, srv.isEffect) {
		srv.n++
	}
}

// isEffect reports whether a change is of the znode that the call is about: that is created, or exists and is changed.
func (srv *tableServer) isEffect(change zkserver.Change) bool {
	if !strings.HasPrefix(change.Path, srv.dir+"/") || !strings.Contains(change.Path, "znode") || zkpath.IsEpoch(change.Path) {
		return false
	}
	switch change.Kind {
	case zkserver.Created:
		return !srv.exists
	case zkserver.Deleted, zkserver.ACLSet:
		return srv.exists
	}
	return change.Kind == zkserver.DataSet // by CreateOrSet, too, where none exists
}

func (srv *tableServer) applied() int {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	return srv.n
}

// A tableCase is one call of the table.
type tableCase struct {
	write  tableWrite
	loss   fault.Action
	others string
	fresh  bool // the call is the first request of its session
	ends   bool // the session ends before the client has a connection again
}

func (tt tableCase) String() string {
	name := fmt.Sprintf("%s/%v/%s", tt.write.name, tt.loss, tt.others)
	if tt.fresh {
		name += "/fresh"
	}
	if tt.ends {
		name += "/session ends"
	}
	return name
}

// run makes the call and returns how it ended, and how often it was applied.
func (tt tableCase) run(t testing.TB, srv *tableServer, dir string, opts ...framework.Option) (applied int, err error) {
	t.Helper()
	in := tableRow{dir: dir, path: dir + "/znode"}
	must.Get(srv.observer.Create(t.Context(), dir, nil, framework.WithParents()))(t)
	if tt.write.exists {
		in.epoch, in.st = mustCreateAtEpoch(t, srv.observer, in.path)
	} else {
		must.Get(srv.observer.Create(t.Context(), zkpath.Epoch(in.path), nil))(t)
	}
	srv.begin(dir, tt.write.exists)
	c := must.Get(framework.NewClient(srv.Addr(), append([]framework.Option{
		framework.WithSessionTimeout(10 * time.Second), framework.WithDialer(srv.Dial),
	}, opts...)...))(t)
	defer func() { _ = c.Close() }() // what is pending is not of interest
	must.OK(t, c.AwaitConnected(t.Context()))
	if !tt.fresh {
		must.Get2(c.Exists(t.Context(), "/"))(t)
	}
	lost := srv.Rules().Add(fault.Rule{Session: c.Session().ID, Op: tt.write.op, Path: dir + "/**", Action: tt.loss})
	srv.Refuse()
	done := background(func() error { return tt.write.do(tableCall{in, t.Context(), c}) })
	await(t, lost.Hit(), "the loss")
	synctest.Wait()
	if tt.ends {
		must.OK(t, srv.Expire(c.Session().ID))
	}
	tableOthers()[tt.others](t, srv.other, in, tt.write)
	srv.Accept()
	err = <-done
	zktest.Eventually(t, patience, "what is done in the background is done", func() bool { return c.PendingDeletes() == 0 })
	if tt.others == "delete and create" && tt.write.exists && !tt.write.again {
		data, st, err := srv.other.Get(t.Context(), in.path)
		if err != nil || string(data) != "theirs" || st.Version != 0 || st.Aversion != 0 {
			t.Errorf("%v: %q, %+v, %v, want what others created", tt, data, st, err)
		}
	}
	return srv.applied(), err
}

// check returns what is wrong with the outcome of a call, or "".
func (tt tableCase) check(err error, applied int) string {
	w := tt.write
	unknown := errors.Is(err, framework.ErrUnknownOutcome)
	again := w.again && (tt.others != "nothing" && tt.others != "create elsewhere" || tt.ends)
	switch {
	case w.checks:
		if unknown {
			return "a transaction of checks has no outcome that could be unknown"
		}
	case applied > 1 && !again:
		return fmt.Sprintf("applied %d times", applied)
	case err == nil && applied == 0 && !w.found:
		return "nil although it was not applied"
	case err != nil && !unknown && applied > 0 && !again:
		return "applied, and the error does not say so"
	case err != nil && !unknown && applied > 0 && again && !errors.Is(err, framework.ErrNodeExists):
		return "applied, and the error does not say so"
	case unknown && framework.Retryable(err) && !w.uncertain:
		return "an outcome that stays unknown must not be retryable"
	}
	if tt.loss == fault.CutBefore && tt.others == "nothing" && !tt.ends && !w.uncertain && (err != nil || applied != 1 && !w.checks) {
		return "not applied although nothing was in the way"
	}
	if tt.loss == fault.DropReply && tt.others == "nothing" && !tt.ends {
		switch {
		case w.found && err != nil:
			return "an effect that is there was not found"
		case w.again && err != nil:
			return "its own znode was not found"
		case w.refusal != nil && !errors.Is(err, w.refusal):
			return "the error does not say how the repetition was refused"
		}
	}
	return ""
}

// tableCases returns all the cases for the writes.
func tableCases(writes []tableWrite, ends bool) []tableCase {
	var cases []tableCase
	slices.SortFunc(writes, func(a, b tableWrite) int { return strings.Compare(a.name, b.name) })
	for _, w := range writes {
		for _, loss := range []fault.Action{fault.CutBefore, fault.DropReply} {
			for _, others := range slices.Sorted(maps.Keys(tableOthers())) {
				for _, fresh := range []bool{false, true} {
					cases = append(cases, tableCase{w, loss, others, fresh, false})
				}
				if ends {
					cases = append(cases, tableCase{w, loss, others, false, true})
				}
			}
		}
	}
	return cases
}

// runTable runs the cases and reports the size of the table.
func runTable(t *testing.T, srv *tableServer, cases []tableCase, opts ...framework.Option) {
	t.Helper()
	answers := make(map[string]int)
	for i, tt := range cases {
		applied, err := tt.run(t, srv, fmt.Sprintf("/table/%d", i), opts...)
		if fault := tt.check(err, applied); fault != "" {
			t.Errorf("%v: %s: %v (applied %d times)", tt, fault, err, applied)
		}
		switch {
		case err == nil:
			answers["nil"]++
		case errors.Is(err, framework.ErrUnknownOutcome):
			answers["unknown"]++
		default:
			answers["refused"]++
		}
	}
	t.Logf("%d cases: %v", len(cases), answers)
}

func TestLostReplies(t *testing.T) {
	withTable(t, func(t *testing.T, srv *tableServer) {
		runTable(t, srv, tableCases(tableWrites(t, srv.observer), true))
	})
}

// With compression, calls that compare data compare what they have sent.
func TestLostReplies_with_compression(t *testing.T) {
	withTable(t, func(t *testing.T, srv *tableServer) {
		writes := slices.DeleteFunc(tableWrites(t, srv.observer), func(w tableWrite) bool {
			return !strings.Contains(w.name, "Idempotent") && !strings.Contains(w.name, "KnownBySession")
		})
		runTable(t, srv, tableCases(writes, false), framework.WithCompression())
	}, framework.WithCompression())
}

// TestLostReplies_of_every_request has every writing call fail at each of its requests, and not only at the write:
// for want of a connection, or because its context ends. The failure comes with the request, its reply, or right
// behind the reply, so that the next request is never sent. If the write was applied by then, no later failure of
// the call may say that it was never sent, or that only the context has ended.
func TestLostReplies_of_every_request(t *testing.T) {
	withTable(t, func(t *testing.T, srv *tableServer) {
		writes := tableWrites(t, srv.observer)
		for _, w := range writes {
			if strings.Contains(w.name, "WithParents") {
				do := w.do
				w.name, w.do = w.name+" of missing parents", func(in tableCall) error {
					in.path = in.dir + "/a/b/znode"
					return do(in)
				}
				writes = append(writes, w)
			}
		}
		cases := 0
		for _, w := range writes {
			for _, f := range []failure{
				{action: fault.CutBefore},
				{action: fault.DropReply},
				{},
				{action: fault.HoldRequest, ctx: true},
				{action: fault.HoldReply, ctx: true},
				{ctx: true},
			} {
				for hit := true; hit; f.at++ {
					cases++
					hit = f.inject(t, srv, w, fmt.Sprintf("/t%d", cases))
				}
			}
		}
		t.Logf("%d calls, %d failures", len(writes), cases)
	})
}

// A failure is that of a call's request.
type failure struct {
	action fault.Action // of the request; 0 for a failure right behind its reply
	ctx    bool         // the call's context ends; else the connection does, and there is no other
	at     int          // the request, counted from 0
}

// inject has the call fail, and returns false if it has fewer requests.
func (f failure) inject(t testing.TB, srv *tableServer, w tableWrite, dir string) bool {
	t.Helper()
	in := tableRow{dir: dir, path: dir + "/znode"}
	must.Get(srv.observer.Create(t.Context(), dir, nil))(t)
	if w.exists {
		in.epoch, in.st = mustCreateAtEpoch(t, srv.observer, in.path)
	}
	srv.begin(dir, w.exists)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	proxy := zkproxy.StartPipe(func(ctx context.Context) (net.Conn, error) { return srv.Dial(ctx, "tcp", srv.Addr()) })
	defer func() { must.OK(t, proxy.Close()) }()
	conn := new(failingConn)
	if conn.end = func() { conn.mute.Store(true) }; f.ctx {
		conn.end = cancel
	}
	c := must.Get(framework.NewClient(srv.Addr(), framework.WithRetry(retry.Never()), framework.WithDialer(
		func(ctx context.Context, network, addr string) (_ net.Conn, err error) {
			if conn.Conn == nil {
				conn.Conn, err = proxy.Dial(ctx, network, addr)
				return conn, err
			}
			<-ctx.Done() // there is no other
			return nil, ctx.Err()
		})))(t)
	defer func() { _ = c.Close() }() // what is pending is not of interest
	must.OK(t, c.AwaitConnected(t.Context()))
	must.Get2(c.Exists(t.Context(), "/"))(t)
	hit := func() bool { return conn.left.Load() == 0 }
	if f.action == 0 {
		conn.left.Store(int64(f.at + 1))
	} else {
		rule := proxy.Rules().Add(fault.Rule{Path: dir + "**", Action: f.action, Skip: f.at})
		hit = func() bool { return rule.Hits() > 0 }
	}
	done := background(func() error { return w.do(tableCall{in, ctx, c}) })
	synctest.Wait()
	if !hit() {
		must.OK(t, <-done)
		return false
	}
	if f.ctx {
		cancel()
	}
	err := <-done
	later := f.ctx && strings.Contains(w.name, "Guaranteed") // the client deletes it after the call
	if err != nil && !errors.Is(err, framework.ErrUnknownOutcome) && srv.applied() > 0 && !w.checks && !later {
		t.Errorf("%s: failure %+v: applied, and the error does not say so: %v", w.name, f, err)
	}
	return true
}

// A failingConn fails right behind a reply.
type failingConn struct {
	net.Conn
	in   bytes.Buffer
	left atomic.Int64 // replies until then; it has failed at 0 once it was set
	end  func()       // is called then
	mute atomic.Bool  // nothing more is written
}

func (c *failingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.in.Write(p[:n])
	for frame := nextFrame(&c.in); frame != nil; frame = nextFrame(&c.in) {
		if c.left.Load() > 0 && c.left.Add(-1) == 0 {
			c.end()
		}
	}
	return n, err
}

func (c *failingConn) Write(p []byte) (int, error) {
	if c.mute.Load() {
		return 0, errors.New("the connection has ended")
	}
	return c.Conn.Write(p)
}

// nextFrame takes a whole frame from b, and returns nil if there is none yet.
func nextFrame(b *bytes.Buffer) []byte {
	if b.Len() < 4 {
		return nil
	}
	n := int(binary.BigEndian.Uint32(b.Bytes()))
	if b.Len() < 4+n {
		return nil
	}
	b.Next(4)
	return bytes.Clone(b.Next(n))
}

// A deafConn is a connection whose socket takes nothing from some time on.
type deafConn struct {
	net.Conn
	deaf *atomic.Bool
	full net.Conn // its socket then
}

func (c deafConn) Write(p []byte) (int, error) {
	if c.deaf.Load() {
		return c.full.Write(p)
	}
	return c.Conn.Write(p)
}

func (c deafConn) SetDeadline(at time.Time) error {
	return errors.Join(c.Conn.SetDeadline(at), c.full.SetDeadline(at))
}

func (c deafConn) SetWriteDeadline(at time.Time) error {
	return errors.Join(c.Conn.SetWriteDeadline(at), c.full.SetWriteDeadline(at))
}

func (c deafConn) Close() error { return errors.Join(c.full.Close(), c.Conn.Close()) }

// What a socket never got has no effect, and the call says so, whatever ends it. If the client withdraws
// while a write is under way, it can't know of the requests in that write.
func TestWhatWasNeverWrittenHasAKnownOutcome(t *testing.T) {
	const (
		calls    = 1001
		oneWrite = 300 // requests, at most
	)
	for name, tc := range map[string]struct {
		end     func(srv *zkserver.Server, c *framework.Client, cancel context.CancelFunc)
		want    error
		unknown int64 // at most
	}{
		"the connection breaks": {func(srv *zkserver.Server, _ *framework.Client, _ context.CancelFunc) {
			srv.Refuse()
			srv.Cut()
		}, framework.ErrNotConnected, 0},
		"the contexts end": {func(_ *zkserver.Server, _ *framework.Client, cancel context.CancelFunc) {
			cancel()
		}, context.Canceled, oneWrite},
		"the client is closed": {func(_ *zkserver.Server, c *framework.Client, _ context.CancelFunc) {
			_ = c.Close()
		}, framework.ErrClosed, oneWrite},
		"the session ends": {func(srv *zkserver.Server, c *framework.Client, _ context.CancelFunc) {
			_ = srv.Expire(c.Session().ID)
		}, nil, 0},
	} {
		runVirtually(t, name, func(t *testing.T, srv *zkserver.Server) {
			var deaf atomic.Bool
			c := connect(t, srv.Addr(), framework.WithSessionTimeout(span), framework.WithRetry(retry.Never()),
				framework.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
					conn, err := srv.Dial(ctx, network, addr)
					full, _ := net.Pipe()
					return deafConn{conn, &deaf, full}, err
				}))
			mustCreate(t, c, "/d", "")
			before := len(srv.Paths())
			sleep(time.Second)
			deaf.Store(true)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var wg sync.WaitGroup
			var unknown atomic.Int64
			for range calls {
				wg.Go(func() {
					_, err := c.Create(ctx, "/d/n-", nil, framework.Sequential())
					switch {
					case errors.Is(err, framework.ErrUnknownOutcome):
						unknown.Add(1)
					case err == nil || tc.want != nil && !errors.Is(err, tc.want):
						t.Errorf("error %v, want one that matches %v", err, tc.want)
					}
				})
			}
			sleep(time.Millisecond)
			tc.end(srv, c, cancel)
			wg.Wait()
			if n := unknown.Load(); n > tc.unknown {
				t.Errorf("%d of %d outcomes are unknown, of requests that were never written; want at most %d", n, calls, tc.unknown)
			}
			wantEqual(t, "znodes", len(srv.Paths()), before)
		})
	}
}
