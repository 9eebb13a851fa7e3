package zkserver_test

import (
	"context"
	"fmt"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/testing/zkserver"
)

// A client of docent reaches the server by its dialer.
func ExampleStart() {
	srv, err := zkserver.Start(zkserver.WithSessionTimeouts(time.Second, time.Minute))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	client, err := framework.NewClient(srv.Addr(), framework.WithDialer(srv.Dial))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	path, err := client.Create(context.Background(), "/task-", nil, framework.Ephemeral(), framework.Sequential())
	fmt.Println(path, err)
	for _, session := range srv.Sessions() {
		fmt.Println(session.Timeout, session.Ephemerals)
	}
	// Output:
	// /task-0000000000 <nil>
	// 30s [/task-0000000000]
}
