package partition_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/partition"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
)

// TestRequestsOfAPartition counts, at the server's door, what the page of the recipe promises.
func TestRequestsOfAPartition(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		path, keys, o, route := recipetest.Path(t), names("key-", 8), newOracle(t), env.Route(t)
		other := o.start(t, env.Client(t), path, "b", keys)
		o.await(t, keys, "b")
		c := route.Client(t)
		route.ResetRequests()
		a := o.start(t, c, path, "a", keys)
		o.await(t, keys, "a", "b")
		env.Quiesce()
		count := func(dir string) (all []fault.Op) {
			for _, rq := range route.Requests() {
				if strings.HasPrefix(rq.Path, path+dir) {
					all = append(all, rq.Op)
				}
			}
			return all
		}
		for _, key := range keys {
			got := count("/keys/" + key)
			if owners(partition.Divide(keys, []string{"a", "b"}))[key] == "b" && len(got) != 0 {
				t.Errorf("%s, which does not move: requests %v", key, got)
			}
			if len(got) > 4 {
				t.Errorf("%s, which moves: requests %v, want 4 at most", key, got)
			}
		}
		route.ResetRequests()
		<-time.After(time.Minute)
		if got := count(""); len(got) != 0 {
			t.Errorf("a quiet minute: requests %v, want none", got)
		}
		other.leave(t)
		o.await(t, keys, "a")
		route.ResetRequests()
		a.leave(t)
		env.Quiesce()
		for _, key := range keys {
			if got := count("/keys/" + key); !slices.Equal(got, []fault.Op{fault.Delete}) {
				t.Errorf("%s, when its server leaves: requests %v, want one Delete", key, got)
			}
		}
	}, zkenv.Only("a minute has to pass", zkenv.Embedded))
}
