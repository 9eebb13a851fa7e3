package framework_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/zkpath"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// contenders returns operations that create a protected znode in each of the directories.
func contenders(dirs []string, opts ...framework.CreateOption) []framework.TxnOp {
	opts = append([]framework.CreateOption{
		framework.Ephemeral(), framework.Protected(), framework.Sequential(), framework.WithParents(),
	}, opts...)
	ops := make([]framework.TxnOp, len(dirs))
	for i, dir := range dirs {
		ops[i] = framework.OpCreate(dir+"/node-", []byte("data"), opts...)
	}
	return ops
}

// numbered returns n directories below dir.
func numbered(dir string, n int) []string {
	dirs := make([]string, n)
	for i := range dirs {
		dirs[i] = fmt.Sprintf("%s/%d", dir, i)
	}
	return dirs
}

// wantOneEach fails the test unless there is one znode in each directory, and soon
// where some are still being deleted.
func wantOneEach(t *testing.T, c *framework.Client, dirs []string, paths []string) {
	t.Helper()
	for i, dir := range dirs {
		zktest.Eventually(t, patience, "one znode in "+dir, func() bool {
			names := children(t, c, dir)
			return len(names) == 1 && dir+"/"+names[0] == paths[i]
		})
	}
}

// Others write at the same time. Each Stat is of the transaction, and each list from after it.
func TestCreateAllReportsWhatTheTransactionMade(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		busy := virtual(t, srv)
		node := mustCreate(t, busy, "/busy", "")
		ctx, cancel := context.WithCancel(t.Context())
		writing := background(func() error {
			for ctx.Err() == nil {
				_, _ = busy.Set(ctx, node, nil, framework.AnyVersion)
			}
			return nil
		})
		c := virtual(t, srv)
		for range 50 {
			var st [3]framework.Stat
			var listed [3][]string
			ops := make([]framework.TxnOp, len(st))
			for i, dir := range numbered("/all", len(st)) {
				ops[i] = contenders([]string{dir}, framework.StatTo(&st[i]), framework.ListTo("", &listed[i]))[0]
			}
			for i, path := range must.Get(c.CreateAll(t.Context(), ops...))(t) {
				found, _ := must.Get2(c.Exists(t.Context(), path))(t)
				found.Ctime, found.Mtime = st[i].Ctime, st[i].Mtime // of which the client is not told
				wantEqual(t, "the Stat", st[i], found)
				wantEqual(t, "czxid", st[i].Czxid, st[0].Czxid)
				_, name := zkpath.Split(path)
				wantList(t, "listed", listed[i], []string{name})
				must.OK(t, c.Delete(t.Context(), path))
			}
		}
		cancel()
		check(t, <-writing)
		if n := srv.Frontend(0).Zxid(); n < 300 {
			t.Errorf("%d transactions: nobody wrote at the same time", n)
		}
	}, zkserver.WithCommitTime(time.Millisecond))
}

func TestCreateAll_makes_missing_parents(t *testing.T) {
	t.Parallel()
	proxy := zkproxy.Run(t, zktest.Shared(t).Addr())
	c := connect(t, proxy.Addr())
	dirs := numbered(fresh(t)+"/together/deep", 5)
	must.Get(c.CreateAll(t.Context(), contenders(dirs)...))(t)
	proxy.ResetRequests()
	must.Get(c.CreateAll(t.Context(), contenders(dirs)...))(t)
	if all, multis := len(proxy.Requests()), proxy.Count(fault.Multi); all != multis || multis != 1 {
		t.Errorf("%d requests, %d of them transactions; want one transaction", all, multis)
	}
	for _, dir := range dirs {
		if n := len(children(t, c, dir)); n != 2 {
			t.Errorf("%d znodes in %s, want 2", n, dir)
		}
	}
}

func TestCreateAllIsAllOrNone(t *testing.T) {
	t.Parallel()
	c := connect(t, zktest.Shared(t).Addr()+fresh(t))
	mustCreate(t, c, "/none/0", "")
	ops := []framework.TxnOp{
		contenders([]string{"/none/0"})[0],
		framework.OpCreate("/none/missing/node", nil, framework.Ephemeral(), framework.Protected()),
	}
	_, err := c.CreateAll(t.Context(), ops...)
	var culprit *framework.TxnError
	if !errors.Is(err, framework.ErrNoNode) || !errors.As(err, &culprit) || culprit.Index != 1 {
		t.Errorf("error %v, want ErrNoNode of operation 1", err)
	}
	if names := children(t, c, "/none/0"); len(names) != 0 {
		t.Errorf("%v, want no znode", names)
	}
}

// The reply is lost, and another client may delete one of the znodes before the client is connected again: there is one of
// each in the end.
func TestCreateAll_after_a_loss(t *testing.T) {
	for name, deleted := range map[string]bool{"of the reply": false, "of the reply and a znode": true} {
		runVirtually(t, name, func(t *testing.T, srv *zkserver.Server) {
			c, observer := virtual(t, srv), virtual(t, srv)
			dirs := numbered("/lost", 3)
			for _, dir := range dirs {
				mustCreate(t, observer, dir, "")
			}
			rule := srv.Rules().Add(fault.Rule{Op: fault.Multi, Action: fault.DropReply})
			srv.Refuse()
			var st framework.Stat
			var paths []string
			done := background(func() (err error) {
				paths, err = c.CreateAll(t.Context(), contenders(dirs, framework.StatTo(&st))...)
				return err
			})
			await(t, rule.Hit(), "the transaction")
			if deleted {
				mustDelete(t, observer, dirs[1]+"/"+strings.Join(children(t, observer, dirs[1]), ""))
			}
			srv.Accept()
			must.OK(t, <-done)
			wantOneEach(t, observer, dirs, paths)
			found, _ := must.Get2(observer.Exists(t.Context(), paths[2]))(t)
			wantEqual(t, "the Stat's czxid", st.Czxid, found.Czxid)
		})
	}
}
