package lock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
)

// TestLossBeforeSuccessionOnStalledWay stalls the way from the holder to its follower while a
// read and the heartbeat that is to prove it are sent. Both arrive together, and the follower is
// isolated before it reports the read to the leader. So the heartbeat's answer proves nothing
// of that read: the leader counts from what it learned before.
func TestLossBeforeSuccessionOnStalledWay(t *testing.T) {
	t.Parallel()
	const (
		timeout = 20 * time.Second
		stall   = 2400 * time.Millisecond // longer than the lead of the read, which is 2.25 s
	)
	zkenv.ForEach(t, func(t *testing.T, w *zkenv.Env) {
		members := w.Members()
		follower := members[0]
		way := follower.Route(t)
		holder := way.Client(t, framework.WithSessionTimeout(timeout))
		next := members[len(members)-1].Client(t)
		lost, granted := lossAndSuccession(t, holder, next, anyPath("/succession/stall"), func() {
			<-time.After(timeout) // heartbeats keep their pace by then
			read := way.Rules().Add(fault.Rule{Op: fault.Exists, Action: fault.HoldRequest})
			defer read.Release()
			receive(t, read.Hit(), "the read ahead of a heartbeat")
			before := way.Count(fault.Multi)
			<-time.After(stall)
			synctest.Wait()
			read.Release()
			<-time.After(zkenv.Latency)
			synctest.Wait()
			follower.Isolate(t)
			if way.Count(fault.Multi) != before+1 {
				t.Errorf("%d heartbeats arrived together with the read, want 1", way.Count(fault.Multi)-before)
			}
		})
		if !lost.Before(granted) {
			t.Errorf("lost %v after the next was granted", lost.Sub(granted))
		}
		t.Logf("lost %v before the next was granted", granted.Sub(lost))
	}, zkenv.Breakable(), zkenv.Only("the follower has to be isolated between two of its reports", zkenv.EmbeddedEnsemble))
}
