package framework_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
)

// A curious error asks the client for its state when it is read.
type curiousError struct{ ask func() }

// Error is part of error.
func (e curiousError) Error() string {
	e.ask()
	return "refused"
}

// A dialer's error may call the client: it is read without the client's mutex.
func TestDialersErrorCallsTheClient(t *testing.T) {
	t.Parallel()
	var client atomic.Pointer[framework.Client]
	read := make(chan struct{}, 1)
	dial := func(context.Context, string, string) (net.Conn, error) {
		return nil, curiousError{func() {
			if c := client.Load(); c != nil {
				_ = c.State()
				select {
				case read <- struct{}{}:
				default:
				}
			}
		}}
	}
	c, err := framework.NewClient("192.0.2.1:2181", framework.WithDialer(dial))
	if err != nil {
		t.Fatal(err)
	}
	client.Store(c)
	select {
	case <-read:
	case <-time.After(10 * time.Second):
		t.Error("the dialer's error is read with the client's mutex held: State blocks")
		return // Close would block, too
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := c.AwaitConnected(ctx); err == nil {
		t.Error("AwaitConnected returns without an error")
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
