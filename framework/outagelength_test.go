package framework_test

import (
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/testing/zkserver"
)

// TestAnOutageThatAHoldSurvives has outages begin at any moment between two heartbeats. docs/guarantees.md has
// the lengths: no outage of such a length costs a hold, and each of a session timeout does. The lengths are
// those of [TestADeadlineIsWhatThePaceLeaves], less the longest pause between two attempts to connect, T/16.
func TestAnOutageThatAHoldSurvives(t *testing.T) {
	t.Parallel()
	const phases = 32
	for _, tc := range []struct{ timeout, survived time.Duration }{
		{4 * time.Second, 1500 * time.Millisecond},
		{6 * time.Second, 2300 * time.Millisecond},
		{10 * time.Second, 3900 * time.Millisecond},
		{30 * time.Second, 16500 * time.Millisecond},
	} {
		runVirtually(t, tc.timeout.String(), func(t *testing.T, srv *zkserver.Server) {
			c := connect(t, srv.Addr(), framework.WithDialer(srv.Dial), framework.WithSessionTimeout(tc.timeout))
			outage := func(phase int, length time.Duration) error {
				h := mustHold(t, c)
				defer h.Release()
				sleep(2*tc.timeout + tc.timeout/4*time.Duration(phase)/phases)
				srv.Refuse()
				srv.Cut()
				sleep(length)
				srv.Accept()
				sleep(tc.timeout)
				return h.Err()
			}
			for phase := range phases {
				if err := outage(phase, tc.survived); err != nil {
					t.Errorf("an outage of %v in phase %d: %v", tc.survived, phase, err)
				}
			}
			for phase := range phases {
				if err := outage(phase, tc.timeout); err == nil {
					t.Errorf("an outage of %v in phase %d: the hold is not lost", tc.timeout, phase)
				}
			}
		}, zkserver.WithSessionTimeouts(4*time.Second, time.Minute))
	}
}
