package framework_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkserver"
)

// views are the kinds of a client's view.
var views = map[string]struct {
	chroot     string
	namespaces []string
	bound      bool // to the session
}{
	"none":                     {},
	"chroot":                   {chroot: "/app"},
	"namespace":                {namespaces: []string{"app"}},
	"namespace in a namespace": {namespaces: []string{"app", "part"}},
	"namespace in a chroot":    {chroot: "/app", namespaces: []string{"part"}},
	"session":                  {namespaces: []string{"app"}, bound: true},
}

// view returns a view of the kind, and its root in the ensemble.
func view(t *testing.T, srv *zkserver.Server, kind string) (c *framework.Client, root string) {
	t.Helper()
	v := views[kind]
	c = connect(t, srv.Addr()+v.chroot, framework.WithDialer(srv.Dial))
	for _, namespace := range v.namespaces {
		c = must.Get(c.Namespace(namespace))(t)
	}
	if v.bound {
		c = c.InSession(c.Session().ID)
	}
	return c, strings.TrimSuffix(c.AbsolutePath("/"), "/")
}

// TestASequentialZnodeOfTheRootIsBelowIt creates sequential znodes of "/" in each view, by each call that
// can: as in a client without a view, they are the root's children.
func TestASequentialZnodeOfTheRootIsBelowIt(t *testing.T) {
	type client = *framework.Client
	calls := map[string]func(t *testing.T, c client) (string, error){
		"Create": func(t *testing.T, c client) (string, error) {
			return c.Create(t.Context(), "/", nil, framework.Sequential())
		},
		"Create with parents": func(t *testing.T, c client) (string, error) {
			return c.Create(t.Context(), "/", nil, framework.Sequential(), framework.WithParents())
		},
		"Create, protected": func(t *testing.T, c client) (string, error) {
			return c.Create(t.Context(), "/", nil, framework.Sequential(), framework.Ephemeral(), framework.Protected())
		},
		"CreateAll": func(t *testing.T, c client) (string, error) {
			paths, err := c.CreateAll(t.Context(), framework.OpCreate("/", nil,
				framework.Sequential(), framework.Ephemeral(), framework.Protected()))
			return strings.Join(paths, ""), err
		},
		"Txn": func(t *testing.T, c client) (string, error) {
			results, err := c.Txn(t.Context(), framework.OpCreate("/", nil, framework.Sequential()))
			if err != nil {
				return "", err
			}
			return results[0].Path, nil
		},
	}
	for kind := range views {
		for name, call := range calls {
			runVirtually(t, name+", view: "+kind, func(t *testing.T, srv *zkserver.Server) {
				c, root := view(t, srv, kind)
				if root != "" {
					must.Get(c.Create(t.Context(), "/", nil, framework.WithParents()))(t)
				}
				path, err := call(t, c)
				if err != nil || framework.ValidatePath(path) != nil {
					t.Fatalf("%q, %v", path, errors.Join(err, framework.ValidatePath(path)))
				}
				if !slices.Contains(srv.Paths(), root+path) {
					t.Errorf("the ensemble has %q, want %s", srv.Paths(), root+path)
				}
				wantExists(t, c, path, true)
			})
		}
	}
}

// TestInKeepsAnOperationsView runs operations of one view in transactions of others.
func TestInKeepsAnOperationsView(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtual(t, srv)
		one, two := must.Get(c.Namespace("one"))(t), must.Get(c.Namespace("two"))(t)
		for _, view := range []*framework.Client{one, two} {
			must.Get(view.Create(t.Context(), "/", nil))(t)
		}
		for _, runs := range []*framework.Client{c, one, two} {
			made := must.Get(runs.Txn(t.Context(), framework.OpCreate("/a", []byte("1"), framework.Sequential()).In(one)))(t)
			path := made[0].Path
			wantData(t, one, path, "1")
			check(t, errOf(runs.Txn(t.Context(),
				framework.OpCheck(path, 0).In(one), framework.OpSet(path, []byte("2"), 0).In(one), framework.OpCheck("/", framework.AnyVersion).In(two))))
			wantData(t, one, path, "2")
			_, err := runs.Txn(t.Context(), framework.OpCheck(path, framework.AnyVersion).In(two))
			wantErr(t, "a check in the other view", err, framework.ErrNoNode)
			check(t, errOf(runs.Txn(t.Context(), framework.OpDelete(path, framework.AnyVersion).In(one))))
			wantExists(t, one, path, false)
		}
	})
}

func errOf[T any](_ T, err error) error { return err }

// TestIdempotentKnowsDataByAnyGzip creates what exists already in the form of another compressor.
func TestIdempotentKnowsDataByAnyGzip(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c, plain := virtual(t, srv, framework.WithCompression()), virtual(t, srv)
		data := bytes.Repeat([]byte("settings "), 100)
		for name, level := range map[string]int{"/stored": gzip.NoCompression, "/huffman": gzip.HuffmanOnly} {
			var packed bytes.Buffer
			w := must.Get(gzip.NewWriterLevel(&packed, level))(t)
			must.Get(w.Write(data))(t)
			check(t, w.Close())
			mustCreate(t, plain, name, packed.String())
			check(t, errOf(c.Create(t.Context(), name, data, framework.Idempotent())))
			_, err := c.Create(t.Context(), name, data[1:], framework.Idempotent())
			wantErr(t, "a create with other data", err, framework.ErrNodeExists)
		}
	})
}

// TestACallersBufferIsItsOwnAgain loses the reply to a create and reuses the data's buffer after it has
// returned: the client deletes the znode nevertheless, which it recognises by what it sent.
func TestACallersBufferIsItsOwnAgain(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtual(t, srv)
		buffer := []byte("first")
		srv.Rules().Add(fault.Rule{Op: fault.Create, Path: "/own", Action: fault.HoldReply})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_, err := c.Create(ctx, "/own", buffer, framework.Ephemeral(), framework.KnownBySession())
		cancel()
		wantErr(t, "Create", err, context.DeadlineExceeded)
		copy(buffer, "other")
		srv.Cut()
		<-time.After(time.Minute)
		wantExists(t, c, "/own", false)
	})
}

// TestHoldSessionOfAView holds the session of a view, and not the one that follows it.
func TestHoldSessionOfAView(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtual(t, srv)
		check(t, c.AwaitConnected(t.Context()))
		view := c.InSession(c.Session().ID)
		held := mustHold(t, view)
		wantEqual(t, "the session held", held.Session(), c.Session().ID)
		check(t, srv.Expire(c.Session().ID))
		<-held.Lost()
		_, err := view.HoldSession(t.Context())
		wantErr(t, "HoldSession", err, framework.ErrClosed)
		next := mustHold(t, c)
		_, err = view.HoldSession(within(t, time.Minute))
		wantErr(t, "HoldSession in the next session", err, framework.ErrClosed)
		next.Release()
	})
}

// callsOfPaths returns the calls of a client that take a path.
func callsOfPaths(path string) map[string]func(context.Context, *framework.Client) error {
	calls := requestsAt(path)
	for _, other := range []string{"AddAuth", "Config", "HoldSession", "Ready", "Reconfig", "WhoAmI"} {
		delete(calls, other)
	}
	calls["CheckCreate"] = func(_ context.Context, c *framework.Client) error {
		return c.CheckCreate(path, make([]byte, 1<<21))
	}
	return calls
}

// TestErrorsNameThePathInTheEnsemble has each call fail in each view, by the server and because the
// client is closed. The text has the path in the ensemble, and the error both paths.
func TestErrorsNameThePathInTheEnsemble(t *testing.T) {
	const path = "/missing/znode"
	for kind := range views {
		for name, call := range callsOfPaths(path) {
			runVirtually(t, name+", view: "+kind, func(t *testing.T, srv *zkserver.Server) {
				c, root := view(t, srv, kind)
				want := func(err error) {
					t.Helper()
					of, in := new(framework.OpError), new(framework.TxnError)
					given, full := "", ""
					if errors.As(err, &of) {
						given, full = of.Path, of.AbsolutePath
					}
					if errors.As(err, &in) {
						given, full = in.Path, in.AbsolutePath
					}
					if !strings.Contains(err.Error(), " "+root+path) || given != path || full != root+path {
						t.Errorf("%q of %q, want %s of %s", err, given, root+path, path)
					}
				}
				if err := call(t.Context(), c); err != nil {
					want(err)
				}
				check(t, c.Close())
				switch err := call(t.Context(), c); name {
				case "CheckCreate":
				case "CreateAll", "Txn": // no operation made it fail
					wantErr(t, name, err, framework.ErrClosed)
				default:
					want(err)
				}
			})
		}
	}
}

// TestAnErrorOfEachOperationNamesItsView has a transaction fail at an operation of another view, and by
// the faults of operations of two views.
func TestAnErrorOfEachOperationNamesItsView(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtual(t, srv)
		one, two := must.Get(c.Namespace("one"))(t), must.Get(c.Namespace("two"))(t)
		wantText(t, last(one.Txn(t.Context(), framework.OpCheck("/a", 0).In(two))), "(check /two/a)")
		wantText(t, last(one.Txn(t.Context(), framework.OpCheck("/a", 0), framework.OpCheck("/b", framework.AnyVersion, framework.AtEpoch(1)).In(two))), "(check /one/a)")
		wantText(t, last(one.Txn(t.Context(), framework.OpCheck("/a/", 0), framework.OpDelete("/b/", 0).In(two))), "(check /one/a/)", "(delete /two/b/)")
		check(t, c.Close())
		wantText(t, last(one.Config(t.Context())), "config /zookeeper/config:")
	})
}

// The view of an operation is bound to a session that has ended. A transaction of the client has no effect in the next
// one, whatever view runs it, nor has one that belongs to two sessions.
func TestAnOperationOfASessionEndsWithIt(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c, other := virtual(t, srv), virtual(t, srv)
		former := c.InSession(c.Session().ID)
		check(t, errOf(c.Txn(t.Context(), framework.OpCreate("/before", nil).In(former))))
		check(t, srv.Expire(c.Session().ID))
		sleep(time.Second)
		check(t, c.AwaitConnected(t.Context()))
		for _, runs := range []*framework.Client{c, c.InSession(c.Session().ID)} {
			_, err := runs.Txn(t.Context(), framework.OpCheck("/", framework.AnyVersion), framework.OpCreate("/x", nil, framework.Ephemeral()).In(former))
			wantErr(t, "Txn", err, framework.ErrSessionEnded)
			_, err = runs.CreateAll(t.Context(), framework.OpCreate("/x", nil, framework.Ephemeral(), framework.Protected()).In(former))
			wantErr(t, "CreateAll", err, framework.ErrSessionEnded)
		}
		wantList(t, "znodes", slices.DeleteFunc(children(t, other, "/"), func(name string) bool { return name == "zookeeper" }), []string{"before"})
		check(t, errOf(other.Txn(t.Context(), framework.OpCreate("/y", nil).In(former)))) // another client's sessions are not its own
	})
}
