package fragments_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/locktest"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

func TestReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := zkserver.Run(t) // closed when the test has ended
		client, err := framework.NewClient(server.Addr(), framework.WithDialer(server.Dial))
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		// run your service; a minute of it takes no time
	})
}

func TestTestingPage_faults(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s scene) {
		server := s.server
		mutex, err := lock.NewMutex(s.client, "/locks/report")
		if err != nil {
			t.Fatal(err)
		}
		ctx := t.Context()
		lost := server.Rules().Add(fault.Rule{Op: fault.Create, Path: "/locks/report/*", Action: fault.DropReply})
		lease, err := mutex.Lock(ctx)
		if err != nil {
			t.Fatal(err)
		}
		<-lost.Hit() // the znode was created and the reply was lost: docent found it again
		if err := lease.Err(); err != nil {
			t.Error(err)
		}
	})
}

func TestMain(m *testing.M) { zktest.Main(m) }

func TestAccountLock(t *testing.T) {
	locktest.Run(t, func(t testing.TB, c *framework.Client, path string) lock.Locker {
		mutex, err := lock.NewMutex(c, path) // or what you have built on one
		if err != nil {
			t.Fatal(err)
		}
		return mutex
	}, locktest.Fair(), locktest.Reentrant(), locktest.In(zkenv.Only("quick", zkenv.Embedded)))
}

func TestSuspensionIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := zkserver.Run(t)
		client, err := framework.NewClient(server.Addr(), framework.WithDialer(server.Dial))
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		var suspended atomic.Int32
		client.OnState(func(change framework.StateChange) {
			if change.To == framework.Suspended {
				suspended.Add(1)
			}
		})
		synctest.Wait() // the client is connected
		server.Cut()
		synctest.Wait()
		if suspended.Load() != 1 {
			t.Errorf("%d suspensions, want 1", suspended.Load())
		}
	})
}
