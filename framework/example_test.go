package framework_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"strings"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/framework/zktel"
	"github.com/docent-go/docent/internal/zkpath"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkserver"
)

// exampleServer takes the place of an ensemble: a ZooKeeper within this process. In production the
// connect string names real servers, and no dialer is needed.
func exampleServer() (*zkserver.Server, framework.Option) {
	server, err := zkserver.Start()
	if err != nil {
		panic(err)
	}
	return server, framework.WithDialer(server.Dial)
}

func ExampleNewClient() {
	server, dialer := exampleServer()
	defer server.Close()
	client, err := framework.NewClient(server.Addr()+"/shop",
		framework.WithSessionTimeout(10*time.Second),
		framework.WithRetry(retry.BoundedExponential(50*time.Millisecond, time.Second, 5)),
		dialer)
	if err != nil { // all that is wrong with the arguments; nothing was started
		fmt.Println(err)
		return
	}
	defer client.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	path, err := client.Create(ctx, "/workers/worker-", []byte("10.0.0.7"),
		framework.Ephemeral(), framework.Sequential(), framework.WithParents())
	fmt.Println(path, err)
	data, stat, err := client.Get(ctx, path)
	fmt.Println(string(data), stat.EphemeralOwner == client.Session().ID, err)
	_, err = client.Set(ctx, path, []byte("10.0.0.8"), 7)
	fmt.Println(errors.Is(err, framework.ErrBadVersion), err)
	// Output:
	// /workers/worker-0000000000 <nil>
	// 10.0.0.7 true <nil>
	// true framework: set /shop/workers/worker-0000000000: znode has another version
}

func ExampleClient_Watch() {
	client, _, closeAll := exampleClient()
	defer closeAll()
	ctx := context.Background()
	if _, err := client.Create(ctx, "/config", []byte("v1")); err != nil {
		log.Fatal(err)
	}

	for range 2 { // read, wait for a change or for what may have hidden one, read again
		watch, err := client.Watch(ctx, "/config", framework.WatchData)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(string(watch.Data()))
		go client.Set(ctx, "/config", []byte("v2"), framework.AnyVersion)
		<-watch.Fired()
		watch.Close()
	}
	// Output:
	// v1
	// v2
}

func ExampleClient_Txn() {
	client, _, closeAll := exampleClient()
	defer closeAll()
	ctx := context.Background()

	_, err := client.Txn(ctx, framework.OpCreate("/a", nil), framework.OpDelete("/b", framework.AnyVersion))
	fmt.Println(err)
	_, there, err := client.Exists(ctx, "/a")
	fmt.Println(there, err)
	// Output:
	// framework: txn: operation 1 (delete /b): znode does not exist
	// false <nil>
}

func ExampleClient_HoldSession() {
	client, server, closeAll := exampleClient()
	defer closeAll()
	ctx := context.Background()

	hold, err := client.HoldSession(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer hold.Release()
	if _, err := client.InSession(hold.Session()).Create(ctx, "/leader", nil, framework.Ephemeral()); err != nil {
		log.Fatal(err)
	}
	if err := hold.Secure(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println("the znode exists until the hold is lost:", hold.Err())

	if err := server.Expire(hold.Session()); err != nil {
		log.Fatal(err)
	}
	<-hold.Lost()
	fmt.Println(errors.Is(hold.Err(), framework.ErrSessionEnded))
	// Output:
	// the znode exists until the hold is lost: <nil>
	// true
}

func ExampleClient_States() {
	client, _, closeAll := exampleClient()
	defer closeAll()
	if err := client.AwaitConnected(context.Background()); err != nil {
		log.Fatal(err)
	}
	for change := range client.States(context.Background()) {
		fmt.Println(change.To)
		if change.To == framework.Connected {
			go client.Close()
		}
	}
	// Output:
	// Connected
	// Closed
}

func ExampleClient_Namespace() {
	client, err := framework.NewClient("h1:2181,h2:2181/chroot")
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	tenant, err := client.Namespace("tenants/42")
	fmt.Println(tenant.AbsolutePath("/config"), err)
	// Output: /chroot/tenants/42/config <nil>
}

// exampleClient returns a client of a server within the process.
func exampleClient(opts ...framework.Option) (client *framework.Client, server *zkserver.Server, closeAll func()) {
	server, dialer := exampleServer()
	client, err := framework.NewClient(server.Addr(), append(opts, dialer)...)
	if err != nil {
		panic(err)
	}
	return client, server, func() {
		if err := errors.Join(client.Close(), server.Close()); err != nil {
			panic(err)
		}
	}
}

// All that is wrong with the arguments is said at once, and nothing is started.
func ExampleNewClient_faults() {
	_, err := framework.NewClient("zk1:port,zk2:2181/chroot/",
		framework.WithSessionTimeout(time.Millisecond), framework.WithNamespace("a//b"))
	fmt.Println(err)
	// Output:
	// framework: connect string: chroot: invalid path "/chroot/": must not end in /
	// framework: connect string: server "zk1:port": port "port": must be a number from 1 to 65535
	// framework: namespace "a//b": must be a path without its leading slash
	// framework: session timeout 1ms: must be between 100ms and 596h31m23.647s
}

// A service that is of no use without ZooKeeper waits for it when it starts.
func ExampleClient_AwaitConnected() {
	client, _, closeAll := exampleClient()
	defer closeAll()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := client.AwaitConnected(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(client.State(), client.Session().Timeout)
	// Output: Connected 30s
}

func ExampleClient_OnState() {
	client, server, closeAll := exampleClient()
	defer closeAll()
	if err := client.AwaitConnected(context.Background()); err != nil {
		log.Fatal(err)
	}
	back := make(chan struct{})
	remove := client.OnState(func(change framework.StateChange) { // the present state first
		fmt.Println(change.To)
		switch {
		case change.From == framework.Suspended:
			close(back)
		case change.To == framework.Connected:
			server.Cut() // the connection breaks
		}
	})
	<-back
	remove() // no further call
	// Output:
	// Connected
	// Suspended
	// Connected
}

func ExampleClient_Create() {
	client, _, closeAll := exampleClient()
	defer closeAll()
	ctx := context.Background()

	path, err := client.Create(ctx, "/queue/task-", []byte("resize 17.png"),
		framework.Sequential(), framework.WithParents())
	fmt.Println(path, err)

	_, err = client.Create(ctx, path, nil)
	fmt.Println(errors.Is(err, framework.ErrNodeExists), err)

	_, err = client.Create(ctx, "/queue/"+"/task", nil)
	fmt.Println(errors.Is(err, framework.ErrInvalidPath))
	// Output:
	// /queue/task-0000000000 <nil>
	// true framework: create /queue/task-0000000000: znode already exists
	// true
}

// A client that has read an old version doesn't overwrite a later write of another client.
func ExampleClient_Set() {
	client, _, closeAll := exampleClient()
	defer closeAll()
	ctx := context.Background()
	if _, err := client.Create(ctx, "/limit", []byte("10")); err != nil {
		log.Fatal(err)
	}
	_, read, err := client.Get(ctx, "/limit")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := client.Set(ctx, "/limit", []byte("20"), read.Version); err != nil {
		log.Fatal(err)
	}
	_, err = client.Set(ctx, "/limit", []byte("11"), read.Version)
	fmt.Println(errors.Is(err, framework.ErrBadVersion))
	now, err := client.Set(ctx, "/limit", []byte("30"), framework.AnyVersion)
	fmt.Println("version", now.Version, err)
	// Output:
	// true
	// version 2 <nil>
}

func ExampleClient_CreateOrSet() {
	client, _, closeAll := exampleClient()
	defer closeAll()
	ctx := context.Background()
	for _, value := range []string{"blue", "green"} {
		st, err := client.CreateOrSet(ctx, "/service/colour", []byte(value), framework.WithParents())
		fmt.Println(value, "is version", st.Version, err)
	}
	// Output:
	// blue is version 0 <nil>
	// green is version 1 <nil>
}

func ExampleClient_Delete() {
	client, _, closeAll := exampleClient()
	defer closeAll()
	ctx := context.Background()
	if _, err := client.Create(ctx, "/job/result", nil, framework.WithParents()); err != nil {
		log.Fatal(err)
	}
	fmt.Println(client.Delete(ctx, "/job"))
	// Where the outcome can't be had, the client goes on with it in the background.
	fmt.Println(client.Delete(ctx, "/job/result", framework.AtVersion(0), framework.Guaranteed()))
	fmt.Println(client.Delete(ctx, "/job/result"))
	fmt.Println(client.Delete(ctx, "/job/result", framework.Idempotent()))
	// Output:
	// framework: delete /job: znode has children (DeleteTree deletes them)
	// <nil>
	// framework: delete /job/result: znode does not exist
	// <nil>
}

func ExampleClient_DeleteTree() {
	client, _, closeAll := exampleClient()
	defer closeAll()
	ctx := context.Background()
	for _, path := range []string{"/app/a/1", "/app/a/2", "/app/b"} {
		if _, err := client.Create(ctx, path, nil, framework.WithParents()); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(client.DeleteTree(ctx, "/app"))
	_, there, err := client.Exists(ctx, "/app")
	fmt.Println(there, err)
	// Output:
	// <nil>
	// false <nil>
}

func ExampleClient_Children() {
	client, _, closeAll := exampleClient()
	defer closeAll()
	ctx := context.Background()
	if _, err := client.Create(ctx, "/hosts/alpha", nil, framework.Ephemeral(), framework.WithParents()); err != nil {
		log.Fatal(err)
	}
	names, st, err := client.Children(ctx, "/hosts")
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range names {
		fmt.Println(zkpath.Join("/hosts", name))
	}
	fmt.Println("changes of the list:", st.Cversion)
	// Output:
	// /hosts/alpha
	// changes of the list: 1
}

// A transaction that is done only while something else is as it was.
func ExampleOpCheck() {
	client, _, closeAll := exampleClient()
	defer closeAll()
	ctx := context.Background()
	if _, err := client.Create(ctx, "/rates", []byte("v1")); err != nil {
		log.Fatal(err)
	}
	bill := func(rates int32) error {
		_, err := client.Txn(ctx, framework.OpCheck("/rates", rates), framework.OpCreate("/bill", nil))
		return err
	}
	fmt.Println(bill(0))
	if _, err := client.Set(ctx, "/rates", []byte("v2"), framework.AnyVersion); err != nil {
		log.Fatal(err)
	}
	err := bill(0)
	var failed *framework.TxnError
	if errors.As(err, &failed) {
		fmt.Println("operation", failed.Index, "failed:", errors.Is(err, framework.ErrBadVersion))
	}
	// Output:
	// <nil>
	// operation 0 failed: true
}

func ExampleValidatePath() {
	for _, path := range []string{"/locks/report", "locks", "/locks/"} {
		fmt.Println(framework.ValidatePath(path))
	}
	// Output:
	// <nil>
	// invalid path "locks": must start with /
	// invalid path "/locks/": must not end in /
}

// Some errors are worth another try later, and some are not.
func ExampleRetryable() {
	for _, err := range []error{framework.ErrNotConnected, framework.ErrUnknownOutcome, framework.ErrNoNode, context.Canceled} {
		fmt.Println(framework.Retryable(err), err)
	}
	// Output:
	// true not connected
	// true outcome unknown
	// false znode does not exist
	// false context canceled
}

// An operation that is called within a sampled span has a span of its own. Here
// spans end in memory; an application gives its provider an exporter.
func ExampleWithTracerProvider() {
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	client, _, closeAll := exampleClient(framework.WithNamespace("shop"), framework.WithTracerProvider(provider))
	defer closeAll()

	ctx, request := provider.Tracer("shop").Start(context.Background(), "GET /orders")
	if _, _, err := client.Get(ctx, "/orders"); err != nil {
		fmt.Println(zktel.ErrorType(err))
	}
	request.End()
	for _, span := range spans.GetSpans() {
		fmt.Printf("%s: %s %s\n", span.Name, span.Status.Code, span.Status.Description)
	}
	// Output:
	// no_node
	// getData /shop: Error znode does not exist
	// GET /orders: Unset
}

// A client logs to whatever log/slog logs to.
func ExampleWithSlog() {
	handler := slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == zktel.AttrSessionID {
			return slog.Attr{} // another one at each run
		}
		return a
	}})
	client, _, closeAll := exampleClient(framework.WithSlog(slog.New(handler)))
	if err := client.AwaitConnected(context.Background()); err != nil {
		log.Fatal(err)
	}
	closeAll()
	// Output:
	// level=INFO msg="connection state changed" logger=zk zookeeper.client.connection.state=connected
	// level=INFO msg="connection state changed" logger=zk zookeeper.client.connection.state=closed
}

// A znode of the creator's belongs to the user that has authenticated.
func ExampleWithAuth() {
	server, dialer := exampleServer()
	defer server.Close()
	ctx := context.Background()
	billing, err := framework.NewClient(server.Addr(), dialer, framework.WithAuth("digest", []byte("billing:secret")))
	if err != nil {
		log.Fatal(err)
	}
	defer billing.Close()
	if _, err := billing.Create(ctx, "/accounts", nil, framework.WithACL(acl.Creator()...)); err != nil {
		log.Fatal(err)
	}

	other, err := framework.NewClient(server.Addr(), dialer)
	if err != nil {
		log.Fatal(err)
	}
	defer other.Close()
	_, _, err = other.Get(ctx, "/accounts")
	fmt.Println("without the credential:", errors.Is(err, framework.ErrNoAuth))
	_, _, err = billing.Get(ctx, "/accounts")
	fmt.Println("with it:", err)
	// Output:
	// without the credential: true
	// with it: <nil>
}

// A protected create finds its znode again if the reply is lost, and leaves no second one.
func ExampleProtected() {
	client, server, closeAll := exampleClient()
	defer closeAll()
	ctx := context.Background()
	if _, err := client.Create(ctx, "/workers", nil); err != nil {
		log.Fatal(err)
	}
	server.Rules().Add(fault.Rule{Op: fault.Create, Action: fault.DropReply})
	path, err := client.Create(ctx, "/workers/worker-", nil,
		framework.Ephemeral(), framework.Sequential(), framework.Protected())
	if err != nil {
		log.Fatal(err)
	}
	names, _, err := client.Children(ctx, "/workers")
	fmt.Println(len(names), strings.HasPrefix(path, "/workers/_c_"), err)
	// Output: 1 true <nil>
}
