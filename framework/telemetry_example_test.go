package framework_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/zktel"
)

// An operation that is called within a sampled span has a span of its own. Here
// spans end in memory; an application gives its provider an exporter.
func ExampleWithTracerProvider() {
	server, dialer := exampleServer()
	defer server.Close()
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	client, err := framework.NewClient(server.Addr()+"/shop", dialer, framework.WithTracerProvider(provider))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	ctx, request := provider.Tracer("shop").Start(context.Background(), "GET /orders")
	if _, _, err := client.Get(ctx, "/orders"); err != nil {
		fmt.Println(framework.ErrorType(err))
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
	server, dialer := exampleServer()
	defer server.Close()
	handler := slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == zktel.AttrSessionID {
			return slog.Attr{} // another one at each run
		}
		return a
	}})
	client, err := framework.NewClient(server.Addr(), dialer, framework.WithSlog(slog.New(handler)))
	if err != nil {
		log.Fatal(err)
	}
	if err := client.AwaitConnected(context.Background()); err != nil {
		log.Fatal(err)
	}
	client.Close()
	// Output:
	// level=INFO msg="connection state changed" logger=zk zookeeper.client.connection.state=connected
	// level=INFO msg="connection state changed" logger=zk zookeeper.client.connection.state=closed
}
