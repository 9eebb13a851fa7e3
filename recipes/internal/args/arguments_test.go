package args_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/framework/health"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/listeners"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/recipes/counter"
	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/recipes/group"
	"github.com/docent-go/docent/recipes/leader"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/recipes/lock/httplock"
	"github.com/docent-go/docent/recipes/model"
	"github.com/docent-go/docent/recipes/node"
	"github.com/docent-go/docent/recipes/partition"
	"github.com/docent-go/docent/recipes/schedule"
	"github.com/docent-go/docent/recipes/semaphore"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
)

// The packages whose exported functions and methods obey one rule for their arguments. Their lists in
// the directory api name what this test has to call.
var packages = []string{
	"framework", "framework/health", "recipes", "recipes/barrier", "recipes/cache", "recipes/counter", "recipes/discovery",
	"recipes/group", "recipes/leader", "recipes/lease", "recipes/lock", "recipes/lock/httplock",
	"recipes/model", "recipes/node", "recipes/partition", "recipes/schedule", "recipes/semaphore", "retry", "listeners",
}

// functions returns the exported functions that take a client, a context, a function, an interface or
// a text.
func functions() []any {
	return []any{
		framework.DigestMD5, framework.ListTo, framework.NewClient, framework.OpCheck, framework.OpCreate,
		framework.OpDelete, framework.OpNever, framework.OpSet, framework.Retryable, framework.Shared[int],
		framework.StatTo, framework.ValidatePath, framework.WhenOver, framework.WithACLProvider, framework.WithAuth,
		framework.WithDialer, framework.WithEpoch, framework.WithLogger, framework.WithMeterProvider,
		framework.WithNamespace, framework.WithResolver, framework.WithRetry, framework.WithSASL,
		framework.WithServers, framework.WithSlog, framework.WithStateListener, framework.WithTLS,
		framework.WithTracerProvider,
		health.Live, health.Ready,
		barrier.New, barrier.NewDouble,
		cache.New, cache.Of[[]byte], cache.WithFilter,
		counter.New, counter.NewValue[[]byte],
		discovery.New[string], discovery.WithClass, discovery.WithUnreadable,
		group.New,
		leader.New, leader.WithID,
		lock.ContextWithOwner, lock.Do, lock.NewLocal, lock.NewMulti, lock.NewMutex, lock.NewOwner,
		lock.NewOwnerOfParty, lock.NewRWMutex, lock.NewSemaphoreMutex, lock.NewUnfairMutex, lock.OwnerFromContext,
		lock.Revoke,
		httplock.New, httplock.Same, httplock.Status, httplock.WithOwner, httplock.WithRefusal,
		model.Versioned[string],
		node.New, node.NewValue[[]byte], node.WithAdoption,
		partition.New, partition.WithID,
		schedule.New,
		semaphore.New, semaphore.WithPermitsAt,
		retry.Do, retry.Hurry, retry.OnRetry, retry.Validate, retry.Value[int], retry.WithRand,
		listeners.NewQueued[int],
		recipes.WithName, recipes.WithQueuePosition, recipes.WithRevocation,
	}
}

// An environment has a connected client, and a value of every type whose methods take a context or a function.
type environment struct {
	t      *testing.T
	client *framework.Client
	lease  *lease.Lease
	values []any
	uses   map[reflect.Type]func(option any) error // of the options of each package
}

func newEnvironment(t *testing.T) *environment {
	t.Helper()
	c := connected(t, zkserver.Run(t, zkenv.DrawVersion(t)...))
	w := newEnvironmentOf(t, c)
	ctx := within(t, time.Minute)
	hold := must.Get(c.HoldSession(ctx))(t)
	t.Cleanup(hold.Release)
	watch := must.Get(c.Watch(ctx, "/", framework.WatchData))(t)
	tree := must.Get(c.WatchTree(ctx, "/"))(t)
	t.Cleanup(tree.Close)
	w.values = append(w.values, hold, watch, tree)
	permits := must.Get(semaphore.New(c, "/semaphore", 1))(t)
	w.lease = must.Get(permits.Acquire(ctx, 1))(t)
	t.Cleanup(func() { _ = w.lease.Release(context.Background()) })
	w.values = append(w.values, w.lease)
	return w
}

// newEnvironmentOf returns an environment with what needs no connection.
func newEnvironmentOf(t *testing.T, c *framework.Client) *environment {
	t.Helper()
	w := &environment{t: t, client: c}
	add := func(made any, err error) any {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		w.values = append(w.values, made)
		t.Cleanup(func() { _ = discard(made, nil) })
		return made
	}
	w.values = append(w.values, c, framework.OpCheck("/checked", framework.AnyVersion))
	add(barrier.New(c, "/barrier"))
	add(barrier.NewDouble(c, "/double", 2))
	kept := add(cache.New(c, "/cached")).(*cache.Cache)
	w.values = append(w.values, cache.Of(kept, model.JSON[string]()), model.Pattern("/routes/{name}"))
	add(counter.New(c, "/counter"))
	add(counter.NewValue(c, "/value", model.JSON[string]()))
	registry := add(discovery.New[string](c, "/services")).(*discovery.Registry[string])
	add(registry.Register(discovery.Instance[string]{Name: "service", ID: "id"}))
	add(registry.Watch("service"))
	members := add(group.New(c, "/group")).(*group.Group)
	must.Get(members.Join("member", nil))(t)
	add(leader.New(c, "/election"))
	mutex := add(lock.NewMutex(c, "/mutex")).(*lock.Mutex)
	add(lock.NewLocal(mutex, 1))
	add(lock.NewMulti(mutex))
	rw := add(lock.NewRWMutex(c, "/rw")).(*lock.RWMutex)
	w.values = append(w.values, rw.Read(), kept.Snapshot(), lock.NewOwner("owner"))
	add(lock.NewSemaphoreMutex(c, "/one"))
	add(lock.NewUnfairMutex(c, "/unfair"))
	add(node.New(c, "/node", nil))
	add(node.NewValue(c, "/node-value", "text", model.JSON[string]()))
	add(partition.New(c, "/partition", []string{"key"}))
	add(schedule.New(c, "/schedule"))
	add(semaphore.New(c, "/semaphore", 1))
	add(listeners.NewQueued[int](func(*listeners.PanicError) {}), nil)
	w.uses = uses(c)
	return w
}

// uses returns a call that takes one option, for each type of options.
func uses(c *framework.Client) map[reflect.Type]func(option any) error {
	const path = "/used"
	calls := make(map[reflect.Type]func(any) error)
	nowhere := framework.WithDialer(func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no network") })
	use[framework.Option](calls, func(o framework.Option) error {
		return discard(framework.NewClient("192.0.2.1:1", nowhere, o)) // a name would be looked up in real time
	})
	use[framework.CreateOption](calls, func(o framework.CreateOption) error {
		return discard(c.Create(context.Background(), path, nil, o))
	})
	use[framework.DeleteOption](calls, func(o framework.DeleteOption) error {
		return c.Delete(context.Background(), path, o)
	})
	use[barrier.Option](calls, func(o barrier.Option) error { return discard(barrier.New(c, path, o)) })
	use[cache.Option](calls, func(o cache.Option) error { return discard(cache.New(c, path, o)) })
	use[discovery.Option](calls, func(o discovery.Option) error { return discard(discovery.New[string](c, path, o)) })
	use[group.Option](calls, func(o group.Option) error { return discard(group.New(c, path, o)) })
	use[leader.Option](calls, func(o leader.Option) error { return discard(leader.New(c, path, o)) })
	use[lock.Option](calls, func(o lock.Option) error { return discard(lock.NewMutex(c, path, o)) })
	use[httplock.Option](calls, func(o httplock.Option) error {
		return discard(httplock.New(func(*http.Request) (lock.Locker, error) { return nil, nil }, func(http.ResponseWriter, *http.Request, *lock.Lease) error { return nil }, o))
	})
	use[retry.DoOption](calls, func(o retry.DoOption) error {
		return retry.Do(context.Background(), retry.Never(), func(context.Context) error { return nil }, o)
	})
	use[retry.Option](calls, func(o retry.Option) error { return retry.Validate(retry.Exponential(time.Second, 1, o)) })
	use[node.Option](calls, func(o node.Option) error { return discard(node.New(c, path, nil, o)) })
	use[partition.Option](calls, func(o partition.Option) error { return discard(partition.New(c, path, []string{"key"}, o)) })
	use[schedule.Option](calls, func(o schedule.Option) error { return discard(schedule.New(c, path, o)) })
	use[semaphore.Option](calls, func(o semaphore.Option) error { return discard(semaphore.New(c, path, 1, o)) })
	return calls
}

func use[O any](calls map[reflect.Type]func(any) error, call func(O) error) {
	calls[reflect.TypeFor[O]()] = func(option any) error { return call(option.(O)) }
}

// discard closes what was made.
func discard[T any](made T, err error) error {
	switch made := any(made).(type) {
	case interface{ Close() error }:
		if err == nil {
			_ = made.Close()
		}
	case interface{ Close(context.Context) error }:
		if err == nil {
			_ = made.Close(context.Background())
		}
	}
	return err
}

// A callable is an exported function, or a method with its value.
type callable struct {
	name string
	fn   reflect.Value
}

// all returns the functions and the methods.
func (env *environment) all() (found []callable) {
	for _, fn := range functions() {
		v := reflect.ValueOf(fn)
		name, _, _ := strings.Cut(path.Base(runtime.FuncForPC(v.Pointer()).Name()), "[")
		found = append(found, callable{name, v})
	}
	for _, value := range env.values {
		v := reflect.ValueOf(value)
		for i := range v.NumMethod() {
			found = append(found, callable{typeName(v.Type()) + "." + v.Type().Method(i).Name, v.Method(i)})
		}
	}
	slices.SortFunc(found, func(a, b callable) int { return strings.Compare(a.name, b.name) })
	return found
}

// named returns the function or method of that name.
func (env *environment) named(name string) reflect.Value {
	all := env.all()
	return all[slices.IndexFunc(all, func(x callable) bool { return x.name == name })].fn
}

// contextCalls returns the names of the calls that take a context.
func contextCalls(t *testing.T) map[string]bool {
	t.Helper()
	names := make(map[string]bool)
	synctest.Test(t, func(t *testing.T) {
		for _, x := range nowhere(t, peer("")).all() {
			if ft := x.fn.Type(); ft.NumIn() > 0 && ft.In(0) == contextType {
				names[x.name] = true
			}
		}
	})
	return names
}

// typeName returns the name of the type that t points to, without its parameters.
func typeName(t reflect.Type) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(t.String(), "*"), "[")
	return name
}

var (
	contextType = reflect.TypeFor[context.Context]()
	errorType   = reflect.TypeFor[error]()
	anyType     = reflect.TypeFor[any]()
)

// arguments returns valid arguments for a call; text is every text.
func (env *environment) arguments(t reflect.Type, text string) []reflect.Value {
	in := make([]reflect.Value, 0, t.NumIn())
	for i := range t.NumIn() {
		p := t.In(i)
		if t.IsVariadic() && i == t.NumIn()-1 {
			if p.Elem().Kind() == reflect.String {
				in = append(in, reflect.ValueOf(text))
			}
			break
		}
		in = append(in, env.argument(p, text))
	}
	return in
}

func (env *environment) argument(p reflect.Type, text string) reflect.Value {
	for _, given := range append([]any{
		retry.Never(), env.lease, model.Bytes(), http.NotFoundHandler(),
		acl.Open(),
		[]string{text},
		time.Unix(1, 0), // a slot of a schedule
		discovery.Instance[string]{Name: "service", ID: "id"},
	}, env.values...) {
		if v := reflect.ValueOf(given); v.Type() == p || p.Kind() == reflect.Interface && p != anyType && v.Type().Implements(p) && p != contextType {
			return v
		}
	}
	switch {
	case p == contextType:
		return reflect.ValueOf(within(env.t, time.Second))
	case p == errorType:
		return reflect.ValueOf(errors.New("an error")).Convert(p)
	case p == anyType:
		return reflect.ValueOf(text).Convert(p)
	case p.Kind() == reflect.String:
		return reflect.ValueOf(text).Convert(p)
	case p.Kind() == reflect.Func:
		return reflect.MakeFunc(p, func([]reflect.Value) (out []reflect.Value) {
			for i := range p.NumOut() {
				out = append(out, reflect.Zero(p.Out(i)))
			}
			return out
		})
	case p.Kind() == reflect.Pointer:
		return reflect.New(p.Elem())
	case p.Kind() >= reflect.Int && p.Kind() <= reflect.Int64:
		return reflect.ValueOf(1).Convert(p)
	}
	return reflect.Zero(p)
}

// An outcome is what a call did.
type outcome struct {
	err      error
	panicked any
	out      []reflect.Value
}

// call calls fn, in virtual time, and ranges over a sequence that it returns.
func (env *environment) call(fn reflect.Value, in []reflect.Value) (o outcome, ended bool) {
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		defer func() {
			o.panicked = recover()
			done <- o
		}()
		o.out = fn.Call(in)
		if use := env.useOf(fn.Type()); use != nil {
			o.err = use(o.out[0].Interface())
		}
		for _, v := range o.out {
			switch {
			case v.Type() == errorType && !v.IsNil():
				o.err = v.Interface().(error)
			case v.Type() == reflect.TypeFor[[]error]():
				o.err = errors.Join(v.Interface().([]error)...)
			case v.Kind() == reflect.Func && v.Type().CanSeq() || v.Kind() == reflect.Func && v.Type().CanSeq2():
				yield := v.Type().In(0)
				v.Call([]reflect.Value{reflect.MakeFunc(yield, func([]reflect.Value) []reflect.Value {
					return []reflect.Value{reflect.ValueOf(false)}
				})})
			}
		}
	}()
	select {
	case o = <-done:
		return o, true
	case <-time.After(time.Minute):
		return outcome{}, false
	}
}

func returnsError(t reflect.Type) bool {
	for i := range t.NumOut() {
		if t.Out(i) == errorType || t.Out(i) == reflect.TypeFor[[]error]() {
			return true
		}
	}
	return false
}

// nilable reports whether nil is a broken argument of the type.
func nilable(p reflect.Type) bool {
	switch p.Kind() {
	case reflect.Func, reflect.Pointer:
		return true
	case reflect.Interface:
		return p != errorType && p != anyType
	}
	return false
}

// mayBeNil has the functions for which nil is no fault, and what it means.
var mayBeNil = map[string]string{
	"framework.Client.Discard":     "an invalid option is logged",
	"framework.ListTo":             "nothing is listed",
	"framework.OpCheck":            "the transaction returns the fault",
	"framework.OpCreate":           "the transaction returns the fault",
	"framework.OpDelete":           "the transaction returns the fault",
	"framework.StatTo":             "nothing is stored",
	"framework.WithEpoch":          "there is no epoch",
	"framework.WithMeterProvider":  "the global provider",
	"framework.WithTracerProvider": "the global provider",
}

func TestNilArguments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newEnvironment(t)
		cases := 0
		for _, x := range w.all() {
			ft := x.fn.Type()
			for i := range ft.NumIn() {
				p, variadic := ft.In(i), ft.IsVariadic() && i == ft.NumIn()-1
				if variadic {
					p = p.Elem()
				}
				if !nilable(p) || x.name == "httplock.WithOwner" && i == 1 { // leaked may be nil
					continue
				}
				in := w.arguments(ft, "/arguments")
				if variadic {
					in = append(in, reflect.Zero(p))
				} else {
					in[i] = reflect.Zero(p)
				}
				cases++
				o, ended := w.call(x.fn, in)
				if why := mayBeNil[x.name]; why != "" && p != contextType {
					if !ended || o.panicked != nil {
						t.Errorf("%s(%v nil), which is allowed (%s): panics with %v", x.name, p, why, o.panicked)
					}
					continue
				}
				if fault := judge(ft, p, w.useOf(ft) != nil, o, ended); fault != "" {
					t.Errorf("%s(%v nil): %s", x.name, p, fault)
				}
			}
		}
		t.Logf("%d cases", cases)
	})
}

// useOf returns a call for each type of options that the function's only result has, one after
// another; nil for none. It returns the first success, because each has to report the fault.
func (env *environment) useOf(ft reflect.Type) func(option any) error {
	if ft.NumOut() != 1 || ft.Out(0).Kind() != reflect.Interface {
		return nil
	}
	var uses []func(any) error
	for of, use := range env.uses {
		if ft.Out(0).Implements(of) {
			uses = append(uses, use)
		}
	}
	if uses == nil {
		return nil
	}
	return func(option any) error {
		var all []error
		for _, use := range uses {
			err := use(option)
			if err == nil {
				return nil
			}
			all = append(all, err)
		}
		return errors.Join(all...)
	}
}

// judge returns what is wrong with the outcome of a call whose argument of the type p was nil.
func judge(ft, p reflect.Type, option bool, o outcome, ended bool) string {
	switch text := fmt.Sprint(o.panicked); {
	case !ended:
		return "does not return"
	case p == contextType || !returnsError(ft) && !option:
		if !strings.HasSuffix(text, "must not be nil") {
			return fmt.Sprintf("panics with %v and returns the error %v, want a panic that names the argument", text, o.err)
		}
	case o.panicked != nil:
		return "panics with " + text + ", want an error"
	case o.err == nil || !strings.Contains(o.err.Error(), "must not be nil"):
		return fmt.Sprintf("returns the error %v, want one that names the argument", o.err)
	}
	return ""
}

// Every function of the packages that takes a client, a context, a function or a text is in the table.
func TestAllCallsAreInTheTable(t *testing.T) {
	line := regexp.MustCompile(`^(?:func (\w+)|method \(\*?(\w+)[^)]*\) (\w+))(?:\[[^]]*\])?\((.*)`)
	synctest.Test(t, func(t *testing.T) {
		w := newEnvironment(t)
		known := make(map[string]bool)
		for _, x := range w.all() {
			known[x.name] = true
		}
		seen := 0
		for _, pkg := range packages {
			file := must.Get(os.Open(filepath.Join("../../../api", filepath.FromSlash(pkg)+".txt")))(t)
			defer file.Close()
			for lines := bufio.NewScanner(file); lines.Scan(); {
				m := line.FindStringSubmatch(lines.Text())
				if m == nil || m[4] == ") string" || m[4] == ") error" || !regexp.MustCompile(`context\.Context|func\(|\bstring\b|Client\b|Provider|Logger`).MatchString(m[4]) {
					continue
				}
				name := filepath.Base(pkg) + "." + m[1] + m[2]
				if m[3] != "" {
					name += "." + m[3]
				}
				seen++
				if !known[name] {
					t.Errorf("%s is not in the table", lines.Text())
				}
			}
		}
		t.Logf("%d functions", seen)
	})
}

// hostile are texts that a log or a server may take for something else.
var hostile = []string{
	"", "/", "/a\nFORGED", "a\nFORGED", "/a\x00b", "/a\x1b[2J", "/\xff\xfe", "/a/../b", "//", "/a/",
	"/" + strings.Repeat("long", 1<<19), "/\u202eb",
}

func TestHostileText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newEnvironment(t)
		cases := 0
		for _, x := range w.all() {
			ft := x.fn.Type()
			if !slices.ContainsFunc(slices.Collect(paramsOf(ft)), func(p reflect.Type) bool {
				return p.Kind() == reflect.String || p.Kind() == reflect.Slice && p.Elem().Kind() == reflect.String
			}) {
				continue
			}
			for _, text := range hostile {
				cases++
				o, ended := w.call(x.fn, w.arguments(ft, text))
				short := fmt.Sprintf("%.20q", text)
				switch {
				case !ended:
					t.Errorf("%s(%s) does not return", x.name, short)
				case o.panicked != nil:
					t.Errorf("%s(%s) panics with %.200v", x.name, short, o.panicked)
				case o.err != nil:
					text := o.err.Error()
					if strings.Contains(text, "\nFORGED") || strings.ContainsAny(text, "\x00\x1b") || !utf8.ValidString(text) {
						t.Errorf("%s(%s): raw text in the error %.200q", x.name, short, text)
					}
					if len(text) > 64<<10 {
						t.Errorf("%s(%s): the error has %d bytes", x.name, short, len(text))
					}
				}
				for _, made := range o.out {
					if made.CanInterface() && made.Kind() == reflect.Pointer && !made.IsNil() {
						_ = discard(made.Interface(), nil)
					}
				}
			}
		}
		t.Logf("%d cases", cases)
	})
}

func paramsOf(ft reflect.Type) iter.Seq[reflect.Type] {
	return func(yield func(reflect.Type) bool) {
		for i := range ft.NumIn() {
			if !yield(ft.In(i)) {
				return
			}
		}
	}
}

// usefulZeros are the types whose zero value is usable, and what it means.
var usefulZeros = map[string]string{
	"cache.Snapshot":   "a tree without znodes",
	"listeners.Queued": "a panic of a listener ends the process",
}

// The zero value of a type that a constructor makes has no client. A method that takes a context or
// returns an error then panics, or returns an error: it does not succeed, and it does not wait. The
// others return nothing, or panic.
func TestZeroValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newEnvironment(t)
		cases := 0
		for _, value := range w.values {
			v := reflect.ValueOf(value)
			if v.Kind() != reflect.Pointer || usefulZeros[typeName(v.Type())] != "" {
				continue
			}
			for i := range v.NumMethod() {
				method := reflect.New(v.Type().Elem()).Method(i)
				name, ft := typeName(v.Type())+"."+v.Type().Method(i).Name, method.Type()
				cases++
				o, ended := w.call(method, w.arguments(ft, "/arguments"))
				asks := returnsError(ft) || ft.NumIn() > 0 && ft.In(0) == contextType
				switch {
				case !ended:
					t.Errorf("%s of a zero value does not return", name)
				case asks && o.panicked == nil && o.err == nil:
					t.Errorf("%s of a zero value succeeds with %v", name, o.out)
				}
			}
		}
		t.Logf("%d cases", cases)
	})
}

// An error of any call that waits for a connection says once which address the client asks, and what is
// wrong with it. Each call has a client and values of its own.
func TestAWrongAddressIsInEveryError(t *testing.T) {
	t.Parallel()
	refused := errors.New("dial tcp 192.0.2.1:1: connect: connection refused")
	refuse := func(context.Context, string, string) (net.Conn, error) { return nil, refused }
	names := contextCalls(t)
	for why, dial := range map[string]dialFunc{
		refused.Error(): refuse,
		"no reply yet from 192.0.2.1:1": func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
		"192.0.2.1:1: not a ZooKeeper handshake": peer("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"),
		"192.0.2.1:1: EOF":                       peer(""),
	} {
		said := 0
		for name := range names {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := nowhere(t, dial)
					fn := w.named(name)
					text := "/arguments"
					if name == "discovery.Registry.Instances" {
						text = "service"
					}
					synctest.Wait() // until the first attempt has failed
					o, ended := w.call(fn, w.arguments(fn.Type(), text))
					waits := errors.Is(o.err, context.DeadlineExceeded) || errors.Is(o.err, framework.ErrNotConnected)
					switch {
					case !ended:
						t.Error("it does not return")
					case waits == (needsNoConnection[name] != ""):
						t.Errorf("%v, and the list of calls that need no connection says %q", o.err, needsNoConnection[name])
					case waits && strings.Count(o.err.Error(), why) != 1:
						t.Errorf("%v, want %q in it once", o.err, why)
					case waits:
						said++
					}
				})
			})
		}
		t.Logf("%d of %d calls say %s", said, len(names), why)
	}
}

// needsNoConnection has the calls that do not wait for a connection, and why.
var needsNoConnection = map[string]string{
	"barrier.Double.Leave":             "there is no lease",
	"cache.Cache.Events":               sequence,
	"cache.Cache.Snapshots":            sequence,
	"cache.Values.Changes":             sequence,
	"counter.Value.All":                sequence,
	"discovery.Registration.Close":     "there is no znode",
	"discovery.Registry.Close":         "there is no znode",
	"discovery.Service.Changes":        sequence,
	"framework.Client.AwaitSessionEnd": "there is no session",
	"framework.Client.PruneParents":    "a root that is the path itself is refused",
	"framework.Client.CreateAll":       "an empty one is refused",
	"framework.Client.Reconfig":        "an empty one is refused",
	"framework.Client.States":          sequence,
	"framework.Client.Txn":             "an empty one is refused",
	"group.Group.Changes":              sequence,
	"group.Group.Close":                "there is no znode",
	"leader.Election.Observe":          sequence,
	"listeners.Queued.Close":           "it has no client",
	"lock.ContextWithOwner":            "it has no client",
	"lock.Mutex.Held":                  "there is no lease",
	"lock.Mutex.Unlock":                "there is no lease",
	"lock.OwnerFromContext":            "it has no client",
	"lock.Side.Held":                   "there is no lease",
	"lock.Side.Unlock":                 "there is no lease",
	"node.Node.Close":                  "there is no znode",
	"node.Value.Close":                 "there is no znode",
	"retry.Do":                         "it has no client",
	"retry.Value":                      "it has no client",
}

const sequence = "the sequence ends with its context"

// A dialFunc connects a client to addr.
type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

// peer returns a dialer of a peer that is no ZooKeeper. It reads something, answers with the text, and
// closes the connection.
func peer(text string) dialFunc {
	return func(context.Context, string, string) (net.Conn, error) {
		conn, far := net.Pipe()
		go func() {
			defer far.Close()
			_, _ = far.Read(make([]byte, 1<<10))
			_, _ = io.WriteString(far, text)
		}()
		return conn, nil
	}
}

// nowhere returns an environment whose client finds no ZooKeeper at its address.
func nowhere(t *testing.T, dial dialFunc) *environment {
	t.Helper()
	c := must.Get(framework.NewClient("192.0.2.1:1", framework.WithDialer(dial)))(t)
	t.Cleanup(func() { _ = c.Close() })
	return newEnvironmentOf(t, c)
}
