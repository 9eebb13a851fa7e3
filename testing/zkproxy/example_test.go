package zkproxy_test

import (
	"context"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zktest"
)

// A create is applied and its reply lost: the client can't know.
func Example() {
	server, err := zktest.Start(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	proxy, err := zkproxy.Start(server.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer proxy.Close()
	client, _, err := zk.Connect([]string{proxy.Addr()}, 10*time.Second, zk.WithLogger(quietLogger{}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	lost := proxy.Rules().Add(fault.Rule{Op: fault.Create, Path: "/locks", Action: fault.DropReply})
	_, err = client.Create("/locks", nil, 0, zk.WorldACL(zk.PermAll))
	<-lost.Hit()
	fmt.Println(err)

	direct, _, err := zk.Connect([]string{server.Addr()}, 10*time.Second, zk.WithLogger(quietLogger{}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer direct.Close()
	exists, _, err := direct.Exists("/locks")
	fmt.Println(exists, err)
	fmt.Println("creates:", proxy.Count(fault.Create))
	// Output:
	// zk: connection closed
	// true <nil>
	// creates: 1
}
