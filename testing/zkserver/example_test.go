package zkserver_test

import (
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkserver"
)

// exampleServer starts a server.
func exampleServer() *zkserver.Server {
	srv, err := zkserver.Start()
	if err != nil {
		panic(err)
	}
	return srv
}

// exampleClient connects a client to a server, over pipes.
func exampleClient(srv *zkserver.Server) *zk.Conn {
	conn, _, err := zk.Connect([]string{srv.Addr()}, 10*time.Second,
		zk.WithDialer(srv.Dialer()), zk.WithLogInfo(false))
	if err != nil {
		panic(err)
	}
	return conn
}

// What does a service do when the session of its leader ends? No need to wait for it.
func ExampleServer_Expire() {
	srv := exampleServer()
	defer srv.Close()
	leader, follower := exampleClient(srv), exampleClient(srv)
	defer leader.Close()
	defer follower.Close()

	leader.Create("/leader", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	_, _, gone, _ := follower.ExistsW("/leader")
	fmt.Println(srv.Expire(leader.SessionID()))
	fmt.Println((<-gone).Type)
	// Output:
	// <nil>
	// EventNodeDeleted
}

// The reply to a create is lost: the client doesn't know, but the node is there.
func ExampleServer_Rules() {
	srv := exampleServer()
	defer srv.Close()
	conn := exampleClient(srv)
	defer conn.Close()

	srv.Rules().Add(fault.Rule{Op: fault.Create, Path: "/order", Action: fault.DropReply})
	_, err := conn.Create("/order", nil, 0, zk.WorldACL(zk.PermAll))
	fmt.Println(err)
	fmt.Println(srv.Paths())
	// Output:
	// zk: connection closed
	// [/ /order /zookeeper /zookeeper/config /zookeeper/quota]
}

// A front end that is cut off from its leader goes on answering reads when the session
// that it serves has come to its end.
func ExampleFrontend_Isolate() {
	srv := exampleServer()
	defer srv.Close()
	conn := exampleClient(srv)
	defer conn.Close()
	conn.Create("/mine", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))

	srv.Frontend(0).Isolate()
	srv.Expire(conn.SessionID())
	exists, _, err := conn.Exists("/mine")
	fmt.Println("the client sees its node:", exists, err)
	fmt.Println("sessions:", len(srv.Sessions()))

	srv.Frontend(0).Heal()
	// Output:
	// the client sees its node: true <nil>
	// sessions: 0
}

// Tools and clients in other languages connect over TCP.
func ExampleServer_Listen() {
	srv := exampleServer()
	defer srv.Close()
	addr, err := srv.Listen("127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(zk.FLWRuok([]string{addr}, 10*time.Second))
	// Output: [true]
}
