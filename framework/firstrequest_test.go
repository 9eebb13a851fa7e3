package framework_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zkserver"
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

// A client with the default options is idle, and then makes its first request. The connection serves it.
func TestFirstRequest_after_any_idle_time(t *testing.T) {
	t.Parallel()
	for idle := time.Duration(0); idle <= idleLimit; idle += time.Second {
		virtually(t, func(t *testing.T, srv *zkserver.Server) {
			var seen trail
			c := must.Get(framework.NewClient(srv.Addr(), framework.WithDialer(srv.Dial), framework.WithStateListener(seen.add)))(t)
			must.OK(t, c.AwaitConnected(t.Context()))
			sleep(idle)
			must.Get2(c.Children(t.Context(), "/"))(t)
			wantList(t, "states after "+idle.String(), seen.states(), []framework.State{connecting, connected})
			must.OK(t, c.Close())
		})
	}
}

// idleLimit is longer than the wire client's first pause between two frames with the defaults, and
// than every deadline of the handshake.
const idleLimit = 30 * time.Second
