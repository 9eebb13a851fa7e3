package framework_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/retry"
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
	// true framework: set /workers/worker-0000000000: znode has another version
}

func ExampleClient_Watch() {
	server, dialer := exampleServer()
	defer server.Close()
	client, err := framework.NewClient(server.Addr(), dialer)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
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
	server, dialer := exampleServer()
	defer server.Close()
	client, err := framework.NewClient(server.Addr(), dialer)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	ctx := context.Background()

	_, err = client.Txn(ctx, framework.OpCreate("/a", nil), framework.OpDelete("/b", framework.AnyVersion))
	fmt.Println(err)
	_, there, err := client.Exists(ctx, "/a")
	fmt.Println(there, err)
	// Output:
	// framework: txn: operation 1 (delete /b): znode does not exist
	// false <nil>
}

func ExampleClient_HoldSession() {
	server, dialer := exampleServer()
	defer server.Close()
	client, err := framework.NewClient(server.Addr(), dialer)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
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
	fmt.Println("the znode stands until the hold is lost:", hold.Err())

	if err := server.Expire(hold.Session()); err != nil {
		log.Fatal(err)
	}
	<-hold.Lost()
	fmt.Println(errors.Is(hold.Err(), framework.ErrSessionEnded))
	// Output:
	// the znode stands until the hold is lost: <nil>
	// true
}

func ExampleClient_States() {
	server, dialer := exampleServer()
	defer server.Close()
	client, err := framework.NewClient(server.Addr(), dialer)
	if err != nil {
		log.Fatal(err)
	}
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

func ExampleCircuitBreaking() {
	server, dialer := exampleServer()
	defer server.Close()
	client, err := framework.NewClient(server.Addr(), dialer)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	calm := make(chan framework.State, 8)
	remove, err := framework.CircuitBreaking(client, retry.Times(5, 200*time.Millisecond),
		func(change framework.StateChange) { calm <- change.To })
	if err != nil {
		log.Fatal(err)
	}
	defer remove()
	for state := range calm {
		if state == framework.Connected {
			break
		}
	}
	server.Cut()
	fmt.Println(<-calm)
	fmt.Println(<-calm) // after 200 ms without another cut
	// Output:
	// Suspended
	// Connected
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
