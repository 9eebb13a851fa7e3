// Registry has gRPC servers that register themselves, and a client whose calls go round those that are
// there. A Java process with Curator's x-discovery, such as one of Spring Cloud, can read them, too.
//
//	go -C examples/registry run .                          on a server within the program
//	go -C examples/registry run . -connect localhost:2181  on yours
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"

	"github.com/docent-go/docent/examples/harness"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/recipes/discovery/grpcresolver"
)

// A place is what the instances say of themselves. Java's class for it is com.example.Place.
type place struct {
	Zone string `json:"zone"`
}

// A server is a gRPC server that is registered.
type server struct {
	grpc         *grpc.Server
	registration *discovery.Registration[place]
	addr         string
	done         chan error // gets the end of its serving
}

func start(ctx context.Context, services *discovery.Registry[place], id string) (*server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &server{grpc: grpc.NewServer(), addr: listener.Addr().String(), done: make(chan error, 1)}
	healthpb.RegisterHealthServer(s.grpc, health.NewServer())
	go func() { s.done <- s.grpc.Serve(listener) }() // ends with stop
	s.registration, err = services.Register(discovery.Instance[place]{
		Name: "web", ID: id,
		Address: "127.0.0.1", Port: listener.Addr().(*net.TCPAddr).Port,
		Payload: place{Zone: "eu"},
	})
	if err == nil {
		err = s.registration.Await(ctx)
	}
	return s, err
}

// stop takes the server back first, and then lets it finish the calls that it has.
func (s *server) stop(ctx context.Context) error {
	err := s.registration.Close(ctx)
	s.grpc.GracefulStop()
	<-s.done
	return err
}

// awaitCalls makes calls until they go to these servers in turn, and prints their names.
func awaitCalls(ctx context.Context, out io.Writer, conn *grpc.ClientConn, names map[string]string, want ...string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		var seen []string
		for range 2 * len(want) {
			var from peer.Peer
			_, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{}, grpc.WaitForReady(true), grpc.Peer(&from))
			if err != nil {
				return err
			}
			seen = append(seen, names[from.Addr.String()])
		}
		slices.Sort(seen)
		if seen = slices.Compact(seen); slices.Equal(seen, want) {
			fmt.Fprintln(out, "calls go to", strings.Join(seen, " and "))
			return nil
		}
	}
}

func run(ctx context.Context, zk harness.ZooKeeper, out io.Writer) error {
	client, err := framework.NewClient(zk.Connect, zk.Dialer)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	services, err := discovery.New[place](client, "/examples/registry", discovery.WithClass("com.example.Place"))
	if err != nil {
		return err
	}
	defer func() { _ = services.Close(ctx) }()

	conn, err := grpc.NewClient("zk:///web",
		grpc.WithResolvers(grpcresolver.NewBuilder(services)),
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"round_robin": {}}]}`),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()

	names := make(map[string]string) // of servers, by address
	first, err := start(ctx, services, "web-1")
	if err != nil {
		return err
	}
	names[first.addr] = "web-1"
	if err := awaitCalls(ctx, out, conn, names, "web-1"); err != nil {
		return err
	}
	second, err := start(ctx, services, "web-2")
	if err != nil {
		return err
	}
	names[second.addr] = "web-2"
	if err := awaitCalls(ctx, out, conn, names, "web-1", "web-2"); err != nil {
		return err
	}
	if err := first.stop(ctx); err != nil {
		return err
	}
	if err := awaitCalls(ctx, out, conn, names, "web-2"); err != nil {
		return err
	}
	return second.stop(ctx)
}

func main() { harness.Main(run) }
