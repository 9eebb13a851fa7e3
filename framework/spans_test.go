package framework_test

import (
	"context"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/testing/zkenv"
)

// An observedCall is a call of an operation and the spans that it has.
type observedCall struct {
	name string
	call func(ctx context.Context, c *framework.Client) error
	want string
}

// second returns a call's error.
func second[T any](_ T, err error) error { return err }

// untraced returns ctx without its span.
func untraced(ctx context.Context) context.Context {
	return trace.ContextWithSpanContext(ctx, trace.SpanContext{})
}

// The calls follow one another on one tree.
func successes() []observedCall {
	return []observedCall{
		{"create", func(ctx context.Context, c *framework.Client) error {
			return second(c.Create(ctx, "/node", []byte("x")))
		}, "create (caller, unset) zookeeper.node.path=/node\n"},
		{"create with parents", func(ctx context.Context, c *framework.Client) error {
			return second(c.Create(ctx, "/a/b/c", nil, framework.WithParents()))
		}, "create (caller, unset) zookeeper.node.path=/a/b/c\n"},
		{"create all", func(ctx context.Context, c *framework.Client) error {
			options := []framework.CreateOption{framework.Ephemeral(), framework.Protected()}
			return second(c.CreateAll(ctx, framework.OpCreate("/p", nil, options...), framework.OpCreate("/q", nil, options...)))
		}, "multi (caller, unset) db.operation.batch.size=2\n"},
		{"get", func(ctx context.Context, c *framework.Client) error {
			_, _, err := c.Get(ctx, "/node")
			return err
		}, "getData (caller, unset) zookeeper.node.path=/node\n"},
		{"exists", func(ctx context.Context, c *framework.Client) error {
			_, _, err := c.Exists(ctx, "/node")
			return err
		}, "exists (caller, unset) zookeeper.node.path=/node\n"},
		{"exists without a znode", func(ctx context.Context, c *framework.Client) error {
			_, _, err := c.Exists(ctx, "/none")
			return err
		}, "exists (caller, unset) zookeeper.node.path=/none\n"},
		{"children", func(ctx context.Context, c *framework.Client) error {
			_, _, err := c.Children(ctx, "/node")
			return err
		}, "getChildren (caller, unset) zookeeper.node.path=/node\n"},
		{"ACL", func(ctx context.Context, c *framework.Client) error {
			_, _, err := c.ACL(ctx, "/node")
			return err
		}, "getACL (caller, unset) zookeeper.node.path=/node\n"},
		{"set ACL", func(ctx context.Context, c *framework.Client) error {
			return second(c.SetACL(ctx, "/node", acl.Open(), framework.AnyVersion))
		}, "setACL (caller, unset) zookeeper.node.path=/node\n"},
		{"sync", func(ctx context.Context, c *framework.Client) error { return c.Sync(ctx, "/node") }, "sync (caller, unset) zookeeper.node.path=/node\n"},
		{"set", func(ctx context.Context, c *framework.Client) error {
			return second(c.Set(ctx, "/node", nil, framework.AnyVersion))
		}, "setData (caller, unset) zookeeper.node.path=/node\n"},
		{"create or set without a znode", func(ctx context.Context, c *framework.Client) error {
			return second(c.CreateOrSet(ctx, "/either", nil))
		}, "setData (caller, unset) db.response.status_code=-101 zookeeper.node.path=/either\n" +
			"create (caller, unset) zookeeper.node.path=/either\n"},
		{"watch", func(ctx context.Context, c *framework.Client) error {
			w, err := c.Watch(ctx, "/node", framework.WatchData)
			if err == nil {
				w.Close()
			}
			return err
		}, "watch (caller, unset) zookeeper.node.path=/node\n"},
		{"txn", func(ctx context.Context, c *framework.Client) error {
			return second(c.Txn(ctx, framework.OpCheck("/node", framework.AnyVersion), framework.OpSet("/either", nil, framework.AnyVersion)))
		}, "multi (caller, unset) db.operation.batch.size=2\n"},
		{"txn of one", func(ctx context.Context, c *framework.Client) error {
			return second(c.Txn(ctx, framework.OpDelete("/either", framework.AnyVersion)))
		}, "multi (caller, unset)\n"},
		{"delete", func(ctx context.Context, c *framework.Client) error { return c.Delete(ctx, "/node") }, "delete (caller, unset) zookeeper.node.path=/node\n"},
		{"idempotent delete without a znode", func(ctx context.Context, c *framework.Client) error {
			return c.Delete(ctx, "/node", framework.Idempotent())
		}, "delete (caller, unset) db.response.status_code=-101 zookeeper.node.path=/node\n"},
		{"delete tree", func(ctx context.Context, c *framework.Client) error {
			for _, path := range []string{"/tree", "/tree/leaf"} {
				if _, err := c.Create(untraced(ctx), path, nil); err != nil {
					return err
				}
			}
			return c.DeleteTree(ctx, "/tree")
		}, "delete (caller, unset) db.response.status_code=-111 zookeeper.node.path=/tree\n" +
			"getChildren (caller, unset) zookeeper.node.path=/tree\n" +
			"delete (caller, unset) zookeeper.node.path=/tree/leaf\n" +
			"delete (caller, unset) zookeeper.node.path=/tree\n"},
	}
}

func failures() []observedCall {
	return []observedCall{
		{"create of a znode that exists", func(ctx context.Context, c *framework.Client) error {
			return second(c.Create(ctx, "/", nil))
		}, "create (caller, error: znode already exists) db.response.status_code=-110 error.type=node_exists zookeeper.node.path=\n"},
		{"create without a parent", func(ctx context.Context, c *framework.Client) error {
			return second(c.Create(ctx, "/none/x", nil))
		}, "create (caller, error: znode does not exist) db.response.status_code=-101 error.type=no_node zookeeper.node.path=/none/x\n"},
		{"get without a znode", func(ctx context.Context, c *framework.Client) error {
			_, _, err := c.Get(ctx, "/none")
			return err
		}, "getData (caller, error: znode does not exist) db.response.status_code=-101 error.type=no_node zookeeper.node.path=/none\n"},
		{"children without a znode", func(ctx context.Context, c *framework.Client) error {
			_, _, err := c.Children(ctx, "/none")
			return err
		}, "getChildren (caller, error: znode does not exist) db.response.status_code=-101 error.type=no_node zookeeper.node.path=/none\n"},
		{"ACL without a znode", func(ctx context.Context, c *framework.Client) error {
			_, _, err := c.ACL(ctx, "/none")
			return err
		}, "getACL (caller, error: znode does not exist) db.response.status_code=-101 error.type=no_node zookeeper.node.path=/none\n"},
		{"set ACL without a znode", func(ctx context.Context, c *framework.Client) error {
			return second(c.SetACL(ctx, "/none", acl.Open(), framework.AnyVersion))
		}, "setACL (caller, error: znode does not exist) db.response.status_code=-101 error.type=no_node zookeeper.node.path=/none\n"},
		{"set of another version", func(ctx context.Context, c *framework.Client) error {
			return second(c.Set(ctx, "/", nil, 7))
		}, "setData (caller, error: znode has another version) db.response.status_code=-103 error.type=bad_version zookeeper.node.path=\n"},
		{"watch without a znode", func(ctx context.Context, c *framework.Client) error {
			return second(c.Watch(ctx, "/none", framework.WatchChildren))
		}, "watch (caller, error: znode does not exist) db.response.status_code=-101 error.type=no_node zookeeper.node.path=/none\n"},
		{"txn with an operation that fails", func(ctx context.Context, c *framework.Client) error {
			return second(c.Txn(ctx, framework.OpCheck("/", framework.AnyVersion), framework.OpDelete("/none", framework.AnyVersion)))
		}, "multi (caller, error: operation 1 (delete /none): znode does not exist) db.operation.batch.size=2 db.response.status_code=-101 error.type=no_node\n"},
		{"delete without a znode", func(ctx context.Context, c *framework.Client) error { return c.Delete(ctx, "/none") }, "delete (caller, error: znode does not exist) db.response.status_code=-101 error.type=no_node zookeeper.node.path=/none\n"},
		{"sync under a context that was cancelled", func(ctx context.Context, c *framework.Client) error {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return c.Sync(ctx, "/")
		}, "sync (caller, error: context canceled) error.type=canceled server.address=none zookeeper.node.path=\n"},
	}
}

// spansOf runs a test in a namespace of its own, with a client that makes spans.
func spansOf(t *testing.T, test func(t *testing.T, tr *traces, c *framework.Client)) {
	t.Helper()
	zkenv.ForEach(t, func(t *testing.T, w *zkenv.Env) {
		tr, namespace := newTraces(), fresh(t)
		mustCreate(t, w.Client(t), namespace, "")
		test(t, tr, w.Client(t, framework.WithTracerProvider(tr.provider), framework.WithNamespace(namespace[1:])))
	})
}

func TestEachOperationHasASpan(t *testing.T) {
	t.Parallel()
	spansOf(t, func(t *testing.T, tr *traces, c *framework.Client) {
		for _, of := range successes() {
			ctx := tr.caller(t)
			if err := of.call(ctx, c); err != nil {
				t.Errorf("%s: %v", of.name, err)
			}
			if got := tr.take(t, ctx, c); got != of.want {
				t.Errorf("%s has the spans\n%swant\n%s", of.name, got, of.want)
			}
		}
	})
}

func TestASpanTellsWhyItsOperationFailed(t *testing.T) {
	t.Parallel()
	spansOf(t, func(t *testing.T, tr *traces, c *framework.Client) {
		for _, of := range failures() {
			ctx := tr.caller(t)
			err := of.call(ctx, c)
			if err == nil {
				t.Errorf("%s: no error", of.name)
			}
			got := tr.take(t, ctx, c)
			if got != of.want {
				t.Errorf("%s has the spans\n%swant\n%s", of.name, got, of.want)
			}
			if kind := "error.type=" + framework.ErrorType(err); !strings.Contains(got, kind) {
				t.Errorf("%s: the error is of another type than the span: %s", of.name, kind)
			}
		}
	})
}
