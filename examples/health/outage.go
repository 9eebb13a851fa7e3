package main

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/docent-go/docent/examples/harness"
	"github.com/docent-go/docent/framework"
)

// outage prints what the probes say before, in and after an outage of the embedded server. A server
// of yours is left alone.
func outage(ctx context.Context, zk harness.ZooKeeper, client *framework.Client, out io.Writer, url string) error {
	if err := client.AwaitConnected(ctx); err != nil {
		return err
	}
	if err := report(ctx, out, "connected", url); err != nil || zk.Embedded == nil {
		return err
	}
	zk.Embedded.Refuse()
	zk.Embedded.Cut()
	for change := range client.States(ctx) {
		if change.To == framework.Suspended {
			break
		}
	}
	if err := report(ctx, out, "without ZooKeeper", url); err != nil {
		return err
	}
	zk.Embedded.Accept()
	if err := client.AwaitConnected(ctx); err != nil {
		return err
	}
	return report(ctx, out, "connected again", url)
}

// report prints what the probes say now.
func report(ctx context.Context, out io.Writer, when, url string) error {
	for _, probe := range []string{"/readyz", "/livez"} {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+probe, nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%-17s  %-7s  %s\n", when, probe, response.Status)
		if err := response.Body.Close(); err != nil {
			return err
		}
	}
	return nil
}
