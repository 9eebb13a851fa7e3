package framework_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/proto"
)

// requestKinds returns a call of each method of a client that sends a request, by the method's name.
func requestKinds() map[string]func(context.Context, *framework.Client) error {
	return requestsAt("/a")
}

// requestsAt is requestKinds for a path.
func requestsAt(path string) map[string]func(context.Context, *framework.Client) error {
	change := framework.ConfigChange{Leave: []int64{1}}
	return map[string]func(context.Context, *framework.Client) error{
		"ACL":      func(ctx context.Context, c *framework.Client) error { return last(c.ACL(ctx, path)) },
		"AddAuth":  func(ctx context.Context, c *framework.Client) error { return c.AddAuth(ctx, "digest", []byte("u:p")) },
		"Children": func(ctx context.Context, c *framework.Client) error { return last(c.Children(ctx, path)) },
		"ChildrenEach": func(ctx context.Context, c *framework.Client) error {
			names, _, errs := c.ChildrenEach(ctx, path, "/b")
			return last(names, errs)
		},
		"Config": func(ctx context.Context, c *framework.Client) error { return last(c.Config(ctx)) },
		"Create": func(ctx context.Context, c *framework.Client) error { return last(c.Create(ctx, path, nil)) },
		"CreateAll": func(ctx context.Context, c *framework.Client) error {
			return last(c.CreateAll(ctx, framework.OpCreate(path, nil, framework.Ephemeral(), framework.Protected())))
		},
		"CreateOrSet": func(ctx context.Context, c *framework.Client) error { return last(c.CreateOrSet(ctx, path, nil)) },
		"Delete":      func(ctx context.Context, c *framework.Client) error { return c.Delete(ctx, path) },
		"DeleteTree":  func(ctx context.Context, c *framework.Client) error { return c.DeleteTree(ctx, path) },
		"Ephemerals":  func(ctx context.Context, c *framework.Client) error { return last(c.Ephemerals(ctx, path)) },
		"Exists": func(ctx context.Context, c *framework.Client) error {
			_, ok, err := c.Exists(ctx, path)
			if ok && err != nil {
				return fmt.Errorf("it exists, and there is the error %s", err.Error())
			}
			return err
		},
		"Get":     func(ctx context.Context, c *framework.Client) error { return last(c.Get(ctx, path)) },
		"GetEach": func(ctx context.Context, c *framework.Client) error { return last(c.GetEach(ctx, path, "/b")) },
		"GetTree": func(ctx context.Context, c *framework.Client) error { return last(c.GetTree(ctx, path)) },
		"HoldSession": func(ctx context.Context, c *framework.Client) error {
			h, err := c.HoldSession(ctx)
			if err == nil {
				defer h.Release()
				err = h.Secure(ctx)
			}
			return err
		},
		"PruneParents": func(ctx context.Context, c *framework.Client) error { return c.PruneParents(ctx, path+"/child", "/") },
		"Ready":        func(ctx context.Context, c *framework.Client) error { return c.Ready(ctx) },
		"Reconfig":     func(ctx context.Context, c *framework.Client) error { return last(c.Reconfig(ctx, change, 1)) },
		"Set":          func(ctx context.Context, c *framework.Client) error { return last(c.Set(ctx, path, nil, 0)) },
		"SetACL":       func(ctx context.Context, c *framework.Client) error { return last(c.SetACL(ctx, path, acl.Open(), 0)) },
		"Sync":         func(ctx context.Context, c *framework.Client) error { return c.Sync(ctx, path) },
		"Txn": func(ctx context.Context, c *framework.Client) error {
			return last(c.Txn(ctx, framework.OpSet(path, nil, 0)))
		},
		"Watch": func(ctx context.Context, c *framework.Client) error {
			w, err := c.Watch(ctx, path, framework.WatchData)
			if err == nil {
				w.Close()
			}
			return err
		},
		"WatchEach": func(ctx context.Context, c *framework.Client) error {
			return last(c.WatchEach(ctx, framework.WatchData, path, "/b"))
		},
		"WatchTree": func(ctx context.Context, c *framework.Client) error {
			w, err := c.WatchTree(ctx, path)
			if err == nil {
				w.Close()
			}
			return err
		},
		"WhoAmI": func(ctx context.Context, c *framework.Client) error { return last(c.WhoAmI(ctx)) },
	}
}

// last returns the error, or the joined errors, that a call returned last.
func last(results ...any) error {
	switch err := results[len(results)-1].(type) {
	case error:
		return err
	case []error:
		return errors.Join(err...)
	}
	return nil
}

// A new method that sends a request has to be added to requestKinds.
func TestRequestKindsAreAll(t *testing.T) {
	t.Parallel()
	kinds := requestKinds()
	blocking := reflect.TypeFor[context.Context]()
	client := reflect.TypeFor[*framework.Client]()
	for i := range client.NumMethod() {
		method := client.Method(i)
		if method.Type.NumIn() < 2 || method.Type.In(1) != blocking {
			continue
		}
		switch method.Name {
		case "AwaitConnected", "AwaitSessionEnd", "States": // they send nothing
			continue
		}
		if kinds[method.Name] == nil {
			t.Errorf("%s is not in requestKinds", method.Name)
		}
	}
}

// idleLimit is longer than the wire client's first pause between two frames with the defaults, and
// than every deadline of the handshake.
const idleLimit = 30 * time.Second

// TestFirstRequest_after_any_idle_time has a client with the default options make one request, as
// its first, after it has been idle. The connection has to serve it.
func TestFirstRequest_after_any_idle_time(t *testing.T) {
	t.Parallel()
	for _, kind := range slices.Sorted(maps.Keys(requestKinds())) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			for idle := time.Duration(0); idle <= idleLimit; idle += time.Second {
				synctest.Test(t, func(t *testing.T) { firstRequest(t, kind, idle) })
			}
		})
	}
}

func firstRequest(t *testing.T, kind string, idle time.Duration) {
	t.Helper()
	var seen trail
	var requests atomic.Int64
	srv := &rawServer{
		greet: func() []byte { return frameOf(goodGreeting(30 * time.Second)) },
		answer: func(xid, opcode int32) [][]byte {
			if xid != proto.XidPing {
				requests.Add(1)
			}
			const config = "version=1"
			switch proto.Opcode(opcode) {
			case proto.OpGetData: // also of the ensemble's configuration
				return [][]byte{replyBody(xid, len(config), config, statBytes())}
			case proto.OpGetChildren2: // DeleteTree needs an end
				return [][]byte{replyBody(xid, 0, statBytes())}
			case proto.OpMultiRead: // GetEach reads two
				read := []any{int(proto.OpGetData), byte(0), 0, len(config), config, statBytes()}
				return [][]byte{replyBody(xid, append(append(read, read...), -1, byte(1), -1)...)}
			case proto.OpMulti:
				return [][]byte{replyBody(xid, int(proto.OpSetData), byte(0), 0, statBytes(), -1, byte(1), -1)}
			}
			return nil
		},
	}
	t.Cleanup(srv.close)
	c := must.Get(framework.NewClient("raw.test", framework.WithDialer(srv.dial), framework.WithStateListener(seen.add)))(t)
	t.Cleanup(func() { c.Close() })
	must.OK(t, c.AwaitConnected(t.Context()))
	sleep(idle)
	before := requests.Load()
	err := requestKinds()[kind](t.Context(), c)
	if err != nil && (kind != "CreateAll" || !errors.Is(err, framework.ErrUnknownOutcome)) { // the server's reply names no znode
		t.Errorf("after %v: %v", idle, err)
	}
	synctest.Wait()
	asked := requests.Load() > before || kind == "HoldSession" // which needs no request while the deadline is far enough
	if !asked || srv.connections() != 1 || fmt.Sprint(seen.states()) != fmt.Sprint([]framework.State{connecting, connected}) {
		t.Errorf("after %v: %d requests on %d connections, states %v", idle, requests.Load()-before, srv.connections(), seen.states())
	}
}
