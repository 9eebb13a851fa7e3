package discovery_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zktest"
)

// A zone is the payload of the tests.
type zone struct {
	Zone   string `json:"zone"`
	Weight int    `json:"weight,omitempty"`
}

type (
	registry     = discovery.Registry[zone]
	registration = discovery.Registration[zone]
	service      = discovery.Service[zone]
	instance     = discovery.Instance[zone]
)

// newRegistry returns a registry that is closed at the end of the test.
func newRegistry(t testing.TB, c *framework.Client, base string, opts ...discovery.Option) *registry {
	t.Helper()
	r := must.Get(discovery.New[zone](c, base, opts...))(t)
	t.Cleanup(func() { must.OK(t, r.Close(context.WithoutCancel(t.Context()))) })
	return r
}

// web returns an instance of the service "web".
func web(id string, port int) instance {
	return instance{Name: "web", ID: id, Address: "10.0.0.1", Port: port, Payload: zone{Zone: "eu"}}
}

func mustRegister(t testing.TB, r *registry, in instance) *registration {
	t.Helper()
	reg := must.Get(r.Register(in))(t)
	must.OK(t, reg.Await(recipetest.Patient(t)))
	return reg
}

func mustWatch(t testing.TB, r *registry, name string) *service {
	t.Helper()
	s := must.Get(r.Watch(name))(t)
	must.OK(t, s.Ready(recipetest.Patient(t)))
	return s
}

// short returns the instances, as in "i1:80 i2:81".
func short(all []instance) string {
	if len(all) == 0 {
		return "none"
	}
	var text []string
	for _, in := range all {
		text = append(text, fmt.Sprintf("%s:%d", in.ID, in.Port))
	}
	return strings.Join(text, " ")
}

// listed returns the instances of "web" that the registry reads, after a sync.
func listed(t testing.TB, c *framework.Client, r *registry) string {
	t.Helper()
	must.OK(t, c.Sync(recipetest.Patient(t), "/"))
	all := must.Get(r.Instances(recipetest.Patient(t), "web"))(t)
	return short(all)
}

func awaitInstances(t testing.TB, s *service, want string) {
	t.Helper()
	zktest.Eventually(t, recipetest.Generous, "the instances "+want, func() bool { return short(s.Instances()) == want })
}

// follow ranges over the service's changes until the end of the test.
func follow(t testing.TB, s *service) *recipetest.Diary {
	t.Helper()
	return recipetest.Follow(t, s.Changes, short)
}

// below counts the requests on the route that are about znodes below the path.
func below(route *zkenv.Route, path string, ops ...fault.Op) int {
	n := 0
	for _, rq := range route.Requests() {
		for _, op := range ops {
			if rq.Op == op && strings.HasPrefix(rq.Path, path) {
				n++
			}
		}
	}
	return n
}
