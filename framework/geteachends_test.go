package framework_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkserver"
)

// A late context ends when its Done is asked for, once ready returns true and all is quiet.
type late struct {
	context.Context
	ready func() bool
	end   context.CancelFunc
}

func (l late) Done() <-chan struct{} {
	synctest.Wait()
	if l.ready() {
		l.end()
	}
	return l.Context.Done()
}

// The context of a GetEach ends just when its replies have come: they say more.
func TestGetEach_whose_context_ends_with_the_replies(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtual(t, srv)
		mustCreate(t, c, "/a", "data")
		asked := srv.Rules().Add(fault.Rule{Op: fault.GetData, Action: fault.Pass, Times: fault.Forever})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		reads, faults := c.GetEach(late{ctx, func() bool { return asked.Hits() == 2 }, cancel}, "/a", "/none")
		if ctx.Err() == nil {
			t.Fatal("the context has not ended: the test shows nothing")
		}
		if faults[0] != nil || string(reads[0].Data) != "data" || !errors.Is(faults[1], framework.ErrNoNode) {
			t.Errorf("%q, errors %v; want the data, and ErrNoNode of the other", reads[0].Data, faults)
		}
	})
}
