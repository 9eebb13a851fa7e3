package framework_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkserver"
)

// TestAPanicOnAGoroutineOfTheClientsIsLogged has each function of the user's panic that the
// client calls on a goroutine of its own: the client goes on.
func TestAPanicOnAGoroutineOfTheClientsIsLogged(t *testing.T) {
	t.Parallel()
	for name, provoke := range map[string]func(t *testing.T, srv *zkserver.Server, opts ...framework.Option){
		"SessionHold.OnLost": func(t *testing.T, srv *zkserver.Server, opts ...framework.Option) {
			c := virtual(t, srv, opts...)
			mustHold(t, c).OnLost(func(error) { panic("by the test") })
			must.OK(t, srv.Expire(c.Session().ID))
			synctest.Wait()
			mustCreate(t, c, "/after", "")
		},
		"Watch.AfterFire": func(t *testing.T, srv *zkserver.Server, opts ...framework.Option) {
			c := virtual(t, srv, opts...)
			mustWatch(t, c, "/", framework.WatchChildren).AfterFire(func() { panic("by the test") })
			mustCreate(t, c, "/after", "")
		},
		"WithRetryObserver": func(t *testing.T, srv *zkserver.Server, opts ...framework.Option) {
			observed := framework.WithRetryObserver(func(framework.Retry) { panic("by the test") })
			c := virtual(t, srv, append(opts, observed)...)
			srv.Rules().Add(fault.Rule{Op: fault.GetChildren, Action: fault.CutBefore})
			must.Get2(c.Children(t.Context(), "/"))(t)
		},
		"WithDialer": func(t *testing.T, srv *zkserver.Server, opts ...framework.Option) {
			var dials atomic.Int32
			virtual(t, srv, append(opts, framework.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
				if dials.Add(1) == 1 {
					panic("by the test")
				}
				return srv.Dial(ctx, network, addr)
			}))...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, func(t *testing.T, srv *zkserver.Server) {
				core, logs := observer.New(zap.ErrorLevel)
				provoke(t, srv, framework.WithLogger(zap.New(core)))
				synctest.Wait()
				lines := logs.FilterMessage("a function of the user's panicked").FilterField(zap.String("function", name))
				if lines.Len() != 1 {
					t.Fatalf("%d lines of the panic, want 1: %v", lines.Len(), logs.All())
				}
				if fields := lines.All()[0].ContextMap(); fields["panic"] != "by the test" || fields["stack"] == nil {
					t.Errorf("fields %v, want the panic and its stack", fields)
				}
			})
		})
	}
}
