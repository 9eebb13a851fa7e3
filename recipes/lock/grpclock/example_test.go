package grpclock_test

import (
	"context"
	"fmt"
	"log"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/recipes/lock/grpclock"
	"github.com/docent-go/docent/testing/zkserver"
)

// exampleClient returns a client of a server within the process.
func exampleClient() (client *framework.Client, closeAll func()) {
	server, err := zkserver.Start()
	if err != nil {
		panic(err)
	}
	client, err = framework.NewClient(server.Addr(), framework.WithDialer(server.Dial))
	if err != nil {
		panic(err)
	}
	return client, func() {
		_ = client.Close() // the example is over
		_ = server.Close()
	}
}

// exampleCall serves the method on a server with the option, and calls it by a client with the options.
func exampleCall(server grpc.ServerOption, method func(ctx context.Context) error, opts ...grpc.DialOption) error {
	s := grpc.NewServer(server)
	defer s.Stop()
	healthpb.RegisterHealthServer(s, &service{check: method}) // gRPC's health service, with another method
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go s.Serve(listener)
	conn, err := grpc.NewClient(listener.Addr().String(), append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = healthpb.NewHealthClient(conn).Check(context.Background(), &healthpb.HealthCheckRequest{})
	return err
}

// A handler locks with its context, and returns what the lock returns.
func ExampleUnaryServerInterceptor() {
	client, closeAll := exampleClient()
	defer closeAll()
	mutex, err := lock.NewMutex(client, "/locks/report")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := mutex.Lock(context.Background()); err != nil { // another call holds the lock
		log.Fatal(err)
	}
	report := func(ctx context.Context) error {
		return lock.Do(ctx, mutex, func(context.Context, *lock.Lease) error { return nil }, lock.WithoutWaiting())
	}
	err = exampleCall(grpc.UnaryInterceptor(grpclock.UnaryServerInterceptor(nil)), report)
	fmt.Println(status.Code(err))
	// Output: Aborted
}

// The client makes a call while it holds the lock, and the server gets the lock's fence.
func ExampleUnaryClientInterceptor() {
	client, closeAll := exampleClient()
	defer closeAll()
	mutex, err := lock.NewMutex(client, "/locks/report")
	if err != nil {
		log.Fatal(err)
	}
	report := func(ctx context.Context) error {
		fence, ok := grpclock.FenceFromContext(ctx)
		fmt.Println("with a fence:", ok, fence > 0)
		return nil
	}
	locker := func(string, any) (lock.Locker, error) { return mutex, nil }
	err = exampleCall(grpc.EmptyServerOption{}, report, grpc.WithUnaryInterceptor(grpclock.UnaryClientInterceptor(locker)))
	fmt.Println(err)
	// Output:
	// with a fence: true true
	// <nil>
}
