package fault_test

import (
	"slices"
	"testing"

	"github.com/docent-go/docent/testing/fault"
)

// A rule that refuses hits what servers answer with its code, and gives the reply that
// ZooKeeper 3.8 gives.
func TestCode(t *testing.T) {
	t.Parallel()
	const last = 77
	writes := []fault.Op{fault.Create, fault.Delete, fault.SetData, fault.SetACL}
	var requests []fault.Op
	for op := fault.Create; op < fault.Connect; op++ {
		if op != fault.Ping && op != fault.CloseSession && op != fault.SetAuth {
			requests = append(requests, op)
		}
	}
	for code, want := range map[fault.Code]struct {
		ops    []fault.Op
		zxid   int64
		closes bool
	}{
		fault.Unimplemented: {requests, -1, true},
		fault.NoAuth:        {writes, 0, false},
		fault.InvalidACL:    {writes, 0, false},
		fault.AuthFailed:    {[]fault.Op{fault.SetAuth}, 0, true},
		fault.NotReadOnly:   {append(slices.Clone(writes), fault.Sync, fault.Check, fault.Multi), last, false},
		fault.AuthRequired:  {append(slices.Clone(requests), fault.Ping, fault.CloseSession), 0, true},
		fault.Throttled:     {requests, last, false},
	} {
		t.Run(code.String(), func(t *testing.T) {
			if code.Zxid(last) != want.zxid || code.Closes() != want.closes {
				t.Errorf("zxid %d, closes %v; want %d, %v", code.Zxid(last), code.Closes(), want.zxid, want.closes)
			}
			for op := fault.Create; op <= fault.Event; op++ {
				rule, answered := fault.Rule{Op: op, Action: fault.Refuse, Code: code}, slices.Contains(want.ops, op)
				if (rule.Validate() == nil) != answered {
					t.Errorf("%v: %v; want it valid: %v", rule, rule.Validate(), answered)
				}
				var rules fault.Rules
				rules.Add(fault.Rule{Action: fault.Refuse, Code: code})
				if hit := rules.Match(fault.Frame{Op: op}) != nil; hit != (answered && op != fault.Ping) {
					t.Errorf("a rule for any request claims a %v: %v", op, hit)
				}
			}
		})
	}
}
