package framework_test

import (
	"context"
	"net"
	"sync"

	"github.com/docent-go/docent/testing/zkserver"
)

// A frontDialer leads one connection after another to the next front end, whatever the client
// asks for.
type frontDialer struct {
	srv   *zkserver.Server     // immutable
	order []*zkserver.Frontend // immutable

	mu   sync.Mutex
	next int // guarded by mu
}

func (d *frontDialer) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	d.mu.Lock()
	f := d.order[d.next%len(d.order)]
	d.next++
	d.mu.Unlock()
	return d.srv.Dial(ctx, network, f.Addr())
}
