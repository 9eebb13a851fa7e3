package grpclock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/recipes/lock/grpclock"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

func newClient(t *testing.T, server *zkserver.Server) *framework.Client {
	t.Helper()
	c := must.Get(framework.NewClient(server.Addr(), framework.WithDialer(server.Dial),
		framework.WithSessionTimeout(4*time.Second)))(t)
	t.Cleanup(func() { must.OK(t, c.Close()) })
	must.OK(t, c.AwaitConnected(t.Context()))
	return c
}

func newMutex(t *testing.T, c *framework.Client) *lock.Mutex {
	t.Helper()
	return must.Get(lock.NewMutex(c, "/calls"))(t)
}

// errOf returns a method that acquires, and returns the error.
func errOf(acquire func(context.Context) (*lock.Lease, error)) func(context.Context) error {
	return func(ctx context.Context) error { _, err := acquire(ctx); return err }
}

// A service is gRPC's own health service with another method.
type service struct {
	healthpb.UnimplementedHealthServer
	check func(ctx context.Context) error
}

func (s *service) Check(ctx context.Context, _ *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	return &healthpb.HealthCheckResponse{}, s.check(ctx)
}

func (s *service) Watch(_ *healthpb.HealthCheckRequest, stream healthpb.Health_WatchServer) error {
	return s.check(stream.Context())
}

// A leak is what a call was reported to have left.
type leak struct {
	method string
	paths  []string
}

// serve runs the method on a gRPC server, and returns a client of it and the leaks it reports.
func serve(
	t *testing.T, check func(ctx context.Context) error, outer ...grpc.UnaryServerInterceptor,
) (healthpb.HealthClient, <-chan leak) {
	t.Helper()
	return serveTo(t, check, nil, outer...)
}

// serveTo is serve for a client with options.
func serveTo(
	t *testing.T, check func(ctx context.Context) error, opts []grpc.DialOption, outer ...grpc.UnaryServerInterceptor,
) (healthpb.HealthClient, <-chan leak) {
	t.Helper()
	leaks := make(chan leak, 8)
	report := func(_ context.Context, method string, paths []string) { leaks <- leak{method, paths} }
	s := grpc.NewServer(grpc.ChainUnaryInterceptor(append(outer, grpclock.UnaryServerInterceptor(report))...),
		grpc.StreamInterceptor(grpclock.StreamServerInterceptor(report)))
	healthpb.RegisterHealthServer(s, &service{check: check})
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.Serve(listener) }) // until it is stopped
	conn := must.Get(grpc.NewClient(listener.Addr().String(),
		append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()))...))(t)
	t.Cleanup(func() {
		_ = conn.Close()
		s.Stop()
		serving.Wait()
	})
	return healthpb.NewHealthClient(conn), leaks
}

func call(ctx context.Context, c healthpb.HealthClient) error {
	_, err := c.Check(ctx, &healthpb.HealthCheckRequest{})
	return err
}

// stream makes the call as a stream.
func stream(ctx context.Context, c healthpb.HealthClient) error {
	s, err := c.Watch(ctx, &healthpb.HealthCheckRequest{})
	if err != nil {
		return err
	}
	_, err = s.Recv()
	return err
}

func TestServer_status(t *testing.T) {
	t.Parallel()
	handlers := map[string]struct {
		check func(ctx context.Context) error
		want  codes.Code
		text  string // of the handler's own, which the client gets
	}{
		"away":         {func(context.Context) error { return fmt.Errorf("get: %w", framework.ErrNotConnected) }, codes.Unavailable, ""},
		"lost":         {func(context.Context) error { return &lock.LostError{Cause: framework.ErrSessionExpired} }, codes.Internal, ""},
		"its own":      {func(context.Context) error { return status.Error(codes.NotFound, "no such order") }, codes.NotFound, "no such order"},
		"without code": {func(context.Context) error { return errors.New("boom") }, codes.Unknown, "boom"},
		"of a type":    {func(context.Context) error { return fmt.Errorf("billing: %w", syscall.ECONNREFUSED) }, codes.Unknown, "billing: "},
		"none":         {func(context.Context) error { return nil }, codes.OK, ""},
	}
	for name, h := range handlers {
		client, _ := serve(t, h.check)
		if err := call(t.Context(), client); status.Code(err) != h.want || !strings.Contains(fmt.Sprint(err), h.text) {
			t.Errorf("%s: %v, want %v with %q", name, err, h.want, h.text)
		}
		if got := status.Code(stream(t.Context(), client)); got != h.want && h.want != codes.OK {
			t.Errorf("%s, as a stream: %v, want %v", name, got, h.want)
		}
	}
}

func TestServer_owners(t *testing.T) {
	t.Parallel()
	server := zkserver.Run(t, zkenv.DrawVersion(t)...)
	m := newMutex(t, newClient(t, server))
	var leases []*lock.Lease
	client, leaks := serve(t, func(ctx context.Context) error {
		for range 2 { // a call may re-enter
			l, err := m.TryLock(ctx)
			if err != nil {
				return err
			}
			leases = append(leases, l)
		}
		return nil
	})
	for name, do := range map[string]func(context.Context, healthpb.HealthClient) error{"Check": call, "Watch": stream} {
		_ = do(t.Context(), client)
		got := <-leaks
		if want := "/grpc.health.v1.Health/" + name; got.method != want || !slices.Equal(got.paths, []string{"/calls"}) {
			t.Errorf("leaked %+v, want /calls by %s", got, want)
		}
		if code := status.Code(do(t.Context(), client)); code != codes.Aborted {
			t.Errorf("a call while another one's lease is left: %v, want Aborted", code)
		}
		for _, l := range leases {
			must.OK(t, l.Release(t.Context()))
		}
		leases = nil
	}
}

func TestClient_holds_the_lock_during_the_call(t *testing.T) {
	t.Parallel()
	server := zkserver.Run(t, zkenv.DrawVersion(t)...)
	c := newClient(t, server)
	m := newMutex(t, c)
	fences := make(chan int64, 2)
	client, _ := serveTo(t, func(ctx context.Context) error {
		fence, ok := grpclock.FenceFromContext(ctx)
		if !ok {
			fence = -1
		}
		fences <- fence
		if len(fences) == 2 {
			<-ctx.Done() // until the lock is lost
		}
		return nil
	}, []grpc.DialOption{grpc.WithUnaryInterceptor(grpclock.UnaryClientInterceptor(
		func(string, any) (lock.Locker, error) { return m, nil }, lock.WaitAtMost(time.Second)))})
	must.OK(t, call(t.Context(), client))
	first := <-fences
	fences <- first
	lost := make(chan error, 1)
	go func() { lost <- call(t.Context(), client) }()
	zktest.Eventually(t, 30*time.Second, "the second call is served", func() bool { return len(fences) == 2 })
	held, err := m.TryLock(t.Context())
	if !errors.Is(err, lock.ErrHeld) {
		t.Errorf("during the call: %v, %v; want ErrHeld", held, err)
	}
	must.OK(t, server.Expire(c.Session().ID))
	if err := <-lost; !errors.Is(err, lock.ErrLost) {
		t.Errorf("a call whose lock was lost: %v, want ErrLost", err)
	}
	<-fences
	if second := <-fences; first <= 0 || second <= first {
		t.Errorf("fences %d and %d, want them to grow", first, second)
	}
}

// TestFenceOfSeveral sends fences besides the interceptor's: one that the caller forwards, and one that a
// proxy adds. No call may reach the server as one without a fence.
func TestFenceOfSeveral(t *testing.T) {
	t.Parallel()
	server := zkserver.Run(t, zkenv.DrawVersion(t)...)
	m := newMutex(t, newClient(t, server))
	held := make(chan int64, 1)
	locked := grpclock.UnaryClientInterceptor(func(string, any) (lock.Locker, error) { return m, nil })
	for name, c := range map[string]struct {
		forwarded, added string
		want             func(own int64) (int64, bool)
	}{
		"a forwarded one":        {"7", "", func(own int64) (int64, bool) { return own, true }},
		"a smaller one added":    {"", "1", func(int64) (int64, bool) { return 1, true }},
		"a greater one added":    {"", "9223372036854775807", func(own int64) (int64, bool) { return own, true }},
		"what is no fence added": {"", "x", func(int64) (int64, bool) { return 0, false }},
	} {
		t.Run(name, func(t *testing.T) {
			proxy := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				sent, _ := metadata.FromOutgoingContext(ctx)
				own := must.Get(strconv.ParseInt(sent.Get("docent-fence")[0], 10, 64))(t)
				held <- own
				if c.added != "" {
					ctx = metadata.AppendToOutgoingContext(ctx, "docent-fence", c.added)
				}
				return invoke(ctx, method, req, reply, cc, opts...)
			}
			client, _ := serveTo(t, func(ctx context.Context) error {
				got, ok := grpclock.FenceFromContext(ctx)
				if want, has := c.want(<-held); got != want || ok != has {
					t.Errorf("the server sees the fence %d, %v; want %d, %v", got, ok, want, has)
				}
				return nil
			}, []grpc.DialOption{grpc.WithChainUnaryInterceptor(locked, proxy)})
			ctx := t.Context()
			if c.forwarded != "" {
				ctx = metadata.AppendToOutgoingContext(ctx, "docent-fence", c.forwarded)
			}
			must.OK(t, call(ctx, client))
		})
	}
}

func TestClient_without_a_lock(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	for _, want := range []error{nil, boom} {
		client, _ := serveTo(t, func(ctx context.Context) error {
			if _, ok := grpclock.FenceFromContext(ctx); ok {
				t.Error("a fence was sent")
			}
			return nil
		}, []grpc.DialOption{grpc.WithUnaryInterceptor(grpclock.UnaryClientInterceptor(
			func(string, any) (lock.Locker, error) { return nil, want }))})
		if err := call(t.Context(), client); !errors.Is(err, want) {
			t.Errorf("call: %v, want %v", err, want)
		}
	}
}

// TestServer_shows_no_host_and_no_path has calls fail with what a lock returns. The holder's znode has
// its host and pid, and the lock's path may have a customer's name. The peer must see none of them.
func TestServer_shows_no_host_and_no_path(t *testing.T) {
	t.Parallel()
	server := zkserver.Run(t, zkenv.DrawVersion(t)...)
	c := newClient(t, server)
	m, rw := newMutex(t, c), newReadWrite(t, c)
	held := must.Get(newMutex(t, newClient(t, server)).Lock(t.Context()))(t)
	host, _ := os.Hostname()
	outer := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		return handler(ctx, req)
	}
	for name, tc := range map[string]struct {
		check func(ctx context.Context) error
		want  codes.Code
	}{
		"an outer timeout ends the wait": {errOf(m.Lock), codes.DeadlineExceeded},
		"an outer timeout ends the wait of Do": {func(ctx context.Context) error {
			return lock.Do(ctx, m, func(context.Context, *lock.Lease) error { return nil })
		}, codes.DeadlineExceeded},
		"a timeout of the handler ends the wait": {func(ctx context.Context) error {
			return lock.Do(ctx, m, func(context.Context, *lock.Lease) error { return nil }, lock.WaitAtMost(10*time.Millisecond))
		}, codes.Aborted},
		"a wrapped error": {func(ctx context.Context) error {
			_, err := m.Lock(ctx)
			return fmt.Errorf("order: %w", err)
		}, codes.DeadlineExceeded},
		"a try":         {errOf(m.TryLock), codes.Aborted},
		"not the owner": {m.Unlock, codes.Unknown},
		"an upgrade": {func(ctx context.Context) error {
			l, err := rw.Read().Lock(ctx)
			if err != nil {
				return err
			}
			defer func() { _ = l.Release(ctx) }()
			_, err = rw.Write().Lock(ctx)
			return err
		}, codes.Unknown},
		"an operation": {func(ctx context.Context) error {
			_, _, err := c.Get(ctx, "/calls/customer")
			return err
		}, codes.Unknown},
	} {
		client, _ := serve(t, tc.check, outer)
		err := call(t.Context(), client)
		if got := status.Code(err); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
		for _, secret := range []string{"/calls", "on " + host, strconv.Itoa(os.Getpid())} {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%s: the peer sees %q in %q", name, secret, err)
			}
		}
	}
	ended, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	waiting, _ := serve(t, errOf(m.Lock))
	if got := status.Code(call(ended, waiting)); got != codes.DeadlineExceeded {
		t.Errorf("a call whose own deadline passed: %v, want DeadlineExceeded", got)
	}
	must.OK(t, held.Release(t.Context()))
}

func newReadWrite(t *testing.T, c *framework.Client) *lock.RWMutex {
	t.Helper()
	return must.Get(lock.NewRWMutex(c, "/calls/both"))(t)
}
