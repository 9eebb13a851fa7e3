package args_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
)

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// A decoy is the cause of a context's end. It notes what it is compared with: a recipe that compares an
// error with a cause in it could take the cause for a server's answer.
type decoy struct {
	mu    sync.Mutex // guards following
	taken []error
}

func (d *decoy) Error() string { return "THE CAUSE" }

func (d *decoy) Is(target error) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if target != context.DeadlineExceeded { // this very error
		d.taken = append(d.taken, target)
	}
	return false
}

// An error has the cause of its context's end once, and matches it. No recipe compares the cause.
func TestRecipesJoinTheCauseOnce(t *testing.T) {
	t.Parallel()
	for name := range contextCalls(t) {
		pkg, _, _ := strings.Cut(name, ".")
		if slices.Contains([]string{"framework", "listeners", "retry"}, pkg) || needsNoConnection[name] != "" {
			continue
		}
		for _, c := range []struct {
			begun bool // what runs in the background
			gone  bool // the servers, instead of silent
		}{{}, {begun: true}, {gone: true}} {
			t.Run(fmt.Sprintf("%s, %+v", name, c), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := zkserver.Run(t, zkenv.DrawVersion(t)...)
					w := newEnvironmentOf(t, connected(t, srv))
					if c.begun {
						<-time.After(time.Second)
					}
					if c.gone {
						srv.Refuse()
						srv.Cut()
						synctest.Wait()
						defer srv.Accept()
					} else {
						srv.Freeze()
						defer srv.Thaw()
					}
					why := new(decoy)
					ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, why)
					defer cancel()
					fn := w.named(name)
					text := "service"
					if pkg == "lock" {
						text = "/arguments"
					}
					in := w.arguments(fn.Type(), text)
					in[0] = reflect.ValueOf(ctx)
					switch o, ended := w.call(fn, in); {
					case !ended || o.panicked != nil:
						t.Errorf("it has returned: %v; it panics with %v", ended, o.panicked)
					case o.err == nil: // it needs no server
					case len(why.taken) > 0:
						t.Errorf("the cause was compared with %q", why.taken)
					case strings.Count(o.err.Error(), why.Error()) != 1 || !errors.Is(o.err, why) || !errors.Is(o.err, ctx.Err()):
						t.Errorf("%q, want the cause in it once", o.err)
					}
				})
			})
		}
	}
}

func connected(t *testing.T, srv *zkserver.Server, opts ...framework.Option) *framework.Client {
	t.Helper()
	c := must.Get(framework.NewClient(srv.Addr(), append(opts, framework.WithDialer(srv.Dial))...))(t)
	t.Cleanup(func() { _ = c.Close() })
	must.OK(t, c.AwaitConnected(within(t, time.Minute)))
	return c
}
