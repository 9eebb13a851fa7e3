package fault_test

import (
	"testing"

	"github.com/docent-go/docent/testing/fault"
)

func TestOpOf(t *testing.T) {
	t.Parallel()
	ops := map[fault.Op][]int32{
		fault.Create:        {1, 15, 19, 21},
		fault.Delete:        {2, 20},
		fault.Exists:        {3},
		fault.GetData:       {4},
		fault.SetData:       {5},
		fault.GetACL:        {6},
		fault.SetACL:        {7},
		fault.GetChildren:   {8, 12},
		fault.Sync:          {9},
		fault.Ping:          {11},
		fault.Check:         {13},
		fault.Multi:         {14},
		fault.RemoveWatches: {17, 18},
		fault.SetAuth:       {100},
		fault.SetWatches:    {101, 105},
		fault.AddWatch:      {106},
		fault.CloseSession:  {-11},
		fault.MultiRead:     {22},
		fault.Other:         {16, 107, 0, 9999, -1},
	}
	for want, opcodes := range ops {
		for _, opcode := range opcodes {
			if got := fault.OpOf(opcode); got != want {
				t.Errorf("OpOf(%d) = %v; want %v", opcode, got, want)
			}
		}
	}
}

func TestStrings(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		fault.Create.String():       "Create",
		fault.Event.String():        "Event",
		fault.Op(0).String():        "Op(0)",
		fault.Op(99).String():       "Op(99)",
		fault.Pass.String():         "Pass",
		fault.OtherSession.String(): "OtherSession",
		fault.Refuse.String():       "Refuse",
		fault.Throttled.String():    "Throttled",
		fault.Code(-1).String():     "Code(-1)",
		fault.Action(0).String():    "Action(0)",
		fault.Action(-1).String():   "Action(-1)",
	} {
		if got != want {
			t.Errorf("String() = %q; want %q", got, want)
		}
	}
	for op := fault.Create; op <= fault.Event; op++ {
		if op.String() == "" {
			t.Errorf("Op %d has no name", op)
		}
	}
	for action := fault.Pass; action <= fault.Refuse; action++ {
		if action.String() == "" {
			t.Errorf("Action %d has no name", action)
		}
	}
}
