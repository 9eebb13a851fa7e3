package main

import (
	"strings"
	"testing"

	"github.com/docent-go/docent/examples/harness"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/testing/zkserver"
)

func TestCallsFollowTheServers(t *testing.T) {
	t.Parallel()
	server := zkserver.Run(t)
	var out strings.Builder
	zk := harness.ZooKeeper{Connect: server.Addr(), Dialer: framework.WithDialer(server.Dial)}
	if err := run(t.Context(), zk, &out); err != nil {
		t.Fatal(err)
	}
	want := `calls go to web-1
calls go to web-1 and web-2
calls go to web-2
`
	if got := out.String(); got != want {
		t.Errorf("printed:\n%s\nwant:\n%s", got, want)
	}
}
