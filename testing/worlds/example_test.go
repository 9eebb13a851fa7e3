package worlds_test

import (
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/worlds"
)

// A test function has one body for all worlds. This one loses the reply to a create on
// one client's way to the server, and sees to it that the client finds out.
func ExampleEach() {
	test := func(t *testing.T) { // func TestCreateIsRepeated
		worlds.Each(t, func(t *testing.T, w *worlds.World) {
			way := w.Way(t)
			way.Rules().Add(fault.Rule{Op: fault.Create, Path: "/node", Action: fault.DropReply})
			if _, err := way.Client(t).Create(t.Context(), "/node", nil, framework.Idempotent()); err != nil {
				t.Error(err)
			}
			if _, ok, err := w.Client(t).Exists(t.Context(), "/node"); err != nil || !ok {
				t.Errorf("exists: %v, %v; want true", ok, err)
			}
		})
	}
	_ = test
}
