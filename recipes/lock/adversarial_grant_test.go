package lock_test

import (
	"testing"
	"testing/synctest"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes"
)

// TestALeaseOfASessionThatIsOverSaysSo has the session end between the moment at which
// the attempt made sure of it and the grant.
func TestALeaseOfASessionThatIsOverSaysSo(t *testing.T) {
	t.Parallel()
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			const path = "/attack/over"
			srv := virtualServer(t)
			c := virtualClient(t, srv)
			m := newMutex(t, c, path, recipes.WithQueuePosition(func(ahead int) {
				if ahead > 0 {
					return
				}
				over := make(chan struct{})
				defer c.OnState(func(change framework.StateChange) {
					if change.To == framework.Lost {
						close(over)
					}
				})()
				if err := srv.Expire(c.Session().ID); err != nil {
					t.Error(err)
				}
				<-over
			}))
			held := mustLock(t, m)
			select {
			case <-held.Lost():
			default:
				t.Error("a lease is returned that is not lost, of a session that is")
			}
		})
	}
}
