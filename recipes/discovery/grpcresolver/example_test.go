package grpcresolver_test

import (
	"context"
	"fmt"
	"log"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/recipes/discovery/grpcresolver"
	"github.com/docent-go/docent/testing/zkserver"
)

// A server registers its address, and a client finds it by the service's name.
func ExampleNewBuilder() {
	zookeeper, err := zkserver.Start() // in the place of an ensemble
	if err != nil {
		log.Fatal(err)
	}
	defer zookeeper.Close()
	client, err := framework.NewClient(zookeeper.Addr(), framework.WithDialer(zookeeper.Dial))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	ctx := context.Background()
	services, err := discovery.New[any](client, "/services")
	if err != nil {
		log.Fatal(err)
	}
	defer services.Close(ctx)

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer()
	defer server.Stop()
	healthpb.RegisterHealthServer(server, health.NewServer())
	go server.Serve(listener)
	registration, err := services.Register(discovery.Instance[any]{
		Name: "web", Address: "127.0.0.1", Port: listener.Addr().(*net.TCPAddr).Port,
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := registration.Await(ctx); err != nil {
		log.Fatal(err)
	}

	conn, err := grpc.NewClient("zk:///web",
		grpc.WithResolvers(grpcresolver.NewBuilder(services)),
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"round_robin": {}}]}`),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	answer, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{})
	fmt.Println(answer.GetStatus(), err)
	// Output: SERVING <nil>
}
