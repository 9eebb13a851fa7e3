package framework_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/testing/zkserver"
)

// exampleClient returns a client of a server within the process.
func exampleClient() (client *framework.Client, server *zkserver.Server, closeAll func()) {
	server, dialer := exampleServer()
	client, err := framework.NewClient(server.Addr(), dialer)
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
	// framework: delete /job: znode has children
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
		fmt.Println(framework.JoinPath("/hosts", name))
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

func ExampleSplitPath() {
	dir, name := framework.SplitPath("/locks/report/_c_0f-lock-0000000003")
	fmt.Println(dir, name)
	// Output: /locks/report _c_0f-lock-0000000003
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
