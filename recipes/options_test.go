package recipes_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/recipes/counter"
	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/recipes/group"
	"github.com/docent-go/docent/recipes/leader"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/recipes/node"
	"github.com/docent-go/docent/recipes/partition"
	"github.com/docent-go/docent/recipes/schedule"
	"github.com/docent-go/docent/recipes/semaphore"
)

// The compiler accepts an option only where its recipe takes it.
func TestOptionsAreThoseOfTheirRecipes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		option any
		of     []string
	}{
		"WithACL":           {recipes.WithACL, []string{"barrier", "counter", "discovery", "group", "leader", "lock", "node", "partition", "schedule", "semaphore"}},
		"WithData":          {recipes.WithData, []string{"lock", "semaphore"}},
		"WithLossPolicy":    {recipes.WithLossPolicy, []string{"leader", "lock", "partition", "schedule", "semaphore"}},
		"WithName":          {recipes.WithName, []string{"barrier", "cache", "discovery", "group", "leader", "lock", "node", "partition", "schedule", "semaphore"}},
		"WithQueuePosition": {recipes.WithQueuePosition, []string{"lock", "semaphore"}},
		"WithRevocation":    {recipes.WithRevocation, []string{"leader", "lock"}},
		"WithSettle":        {recipes.WithSettle, []string{"group", "partition"}},
		"WithoutMetadata":   {recipes.WithoutMetadata, []string{"lock", "semaphore"}},
	} {
		var of []string
		for recipe, option := range map[string]reflect.Type{
			"barrier":   reflect.TypeFor[barrier.Option](),
			"cache":     reflect.TypeFor[cache.Option](),
			"counter":   reflect.TypeFor[counter.Option](),
			"discovery": reflect.TypeFor[discovery.Option](),
			"group":     reflect.TypeFor[group.Option](),
			"leader":    reflect.TypeFor[leader.Option](),
			"lock":      reflect.TypeFor[lock.Option](),
			"node":      reflect.TypeFor[node.Option](),
			"partition": reflect.TypeFor[partition.Option](),
			"schedule":  reflect.TypeFor[schedule.Option](),
			"semaphore": reflect.TypeFor[semaphore.Option](),
		} {
			if reflect.TypeOf(c.option).Out(0).AssignableTo(option) {
				of = append(of, recipe)
			}
		}
		slices.Sort(of)
		if !slices.Equal(of, c.of) {
			t.Errorf("%s is an option of %q, want %q", name, of, c.of)
		}
	}
}
