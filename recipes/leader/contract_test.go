package leader_test

import (
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/leader"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/locktest"
	"github.com/docent-go/docent/testing/zkenv"
)

// TestContract checks what every lock promises, since a leader holds a lease as a lock's holder does.
func TestContract(t *testing.T) {
	t.Parallel()
	formats := map[leader.Format][]locktest.Option{
		leader.Latch:    nil,
		leader.Selector: {locktest.In(zkenv.Only("it differs from Latch in names alone", zkenv.Embedded))},
	}
	for format, opts := range formats {
		t.Run(format.String(), func(t *testing.T) {
			t.Parallel()
			locktest.Run(t, func(t testing.TB, c *framework.Client, path string) lock.Locker {
				return recipetest.Candidate{Election: newElection(t, c, path, leader.WithFormat(format))}
			}, append(opts, locktest.Fair(), locktest.NoTry())...)
		})
	}
}
