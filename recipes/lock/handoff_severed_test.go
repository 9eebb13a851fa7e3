package lock_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/testing/zkserver"
)

// TestHandOffWhenTheConnectionIsLost notifies a waiter of its predecessor's deletion while the
// waiter is busy, and then breaks its connection. The watch on its own znode has not fired, but is
// not valid: an operator deletes that znode, and another client is granted the lock.
func TestHandOffWhenTheConnectionIsLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := anyPath("/hand-off/severed")
		srv := virtualServer(t, zkserver.WithFrontends(2))
		at := func(i int) *framework.Client {
			return newClient(t, srv.Frontend(i).Addr(), framework.WithDialer(srv.Dial))
		}
		others, c := at(0), at(1)
		first := mustLock(t, newMutex(t, others, path))
		second := lockLater(asOwner(t, "second"), newMutex(t, others, path))
		synctest.Wait()
		var once sync.Once
		busy, goOn := make(chan struct{}), make(chan struct{})
		waiter := lockLater(t.Context(), newMutex(t, c, path, recipes.WithQueuePosition(func(position int) {
			if position == 1 {
				once.Do(func() { close(busy) })
				<-goOn
			}
		})))
		synctest.Wait()
		mustRelease(t, first)
		<-busy
		mustRelease(t, granted(t, second, "the predecessor"))
		synctest.Wait()
		srv.Frontend(1).Refuse()
		srv.Frontend(1).Cut()
		deleteNode(t, others, path+"/"+contenders(t, others, path)[0])
		third := mustLock(t, newMutex(t, others, path))
		close(goOn)
		await(time.Second)
		if len(waiter) > 0 {
			t.Errorf("granted beside another holder: %+v", <-waiter)
		}
		srv.Frontend(1).Accept()
		mustRelease(t, third)
		mustRelease(t, granted(t, waiter, "the waiter"))
	})
}
