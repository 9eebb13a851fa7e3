package contender_test

import (
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/internal/contender"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
)

// TestPartyOfGoroutineAllocatesOnce bounds what a party costs each acquire.
func TestPartyOfGoroutineAllocatesOnce(t *testing.T) {
	server := zkserver.Run(t, zkenv.DrawVersion(t)...)
	c := must.Get(framework.NewClient(server.Addr(), framework.WithDialer(server.Dial)))(t)
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	if n := testing.AllocsPerRun(100, func() { contender.PartyOfGoroutine(c, 123456) }); n > 1 {
		t.Errorf("%v allocations, want 1", n)
	}
}
