package locktest_test

import (
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/locktest"
	"github.com/docent-go/docent/testing/zkenv"
)

// A lock of one's own is tested by one call. Here it is a mutex below a directory.
func ExampleRun() {
	test := func(t *testing.T) { // func TestAccountLock
		locktest.Run(t, func(t testing.TB, c *framework.Client, path string) lock.Locker {
			m, err := lock.NewMutex(c, path+"/account")
			if err != nil {
				t.Fatal(err)
			}
			return m
		}, locktest.Fair(), locktest.Reentrant())
	}
	_ = test
}

// An oracle finds two holders at once, and fences that do not grow, in whatever a test lets
// its locks go through.
func ExampleOracle() {
	test := func(t *testing.T) { // func TestTakesTurns
		zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
			oracle := locktest.NewOracle(t)
			for range 3 {
				lease := mustLock(t, env.Client(t), "/turns")
				oracle.Enter(lease)
				// ... the work ...
				oracle.Leave(lease)
				if err := lease.Release(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	_ = test
}
