package membership //nolint:testpackage // it tests what is not exported

import (
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

// A caller is a client that creates znodes of random names in a directory, and abandons its sessions.
type caller struct {
	*framework.Client
	route *zkenv.Route
	names *Names
}

const directory = "/former"

// abandon has the client abandon its session, which the ensemble has for a while longer. A znode that
// shows how long is at the path that abandon returns.
func (c *caller) abandon(t *testing.T) (marker string) {
	t.Helper()
	marker = must.Get(c.Create(t.Context(), "/session-", nil, framework.Ephemeral(), framework.Sequential()))(t)
	before := c.Session().ID
	c.route.Rules().Add(fault.Rule{Op: fault.Connect, Action: fault.OtherSession})
	c.route.Cut()
	zktest.Eventually(t, 30*time.Second, "the next session", func() bool {
		return c.State() == framework.Connected && c.Session().ID != before
	})
	return marker
}

// create creates a znode in the present session. If unknown is set, the outcome is unknown: the request may
// be applied as long as the ensemble has the session.
func (c *caller) create(t *testing.T, unknown bool) (name string) {
	t.Helper()
	session := c.Session().ID
	bound := c.InSession(session)
	ctx := recipetest.Within(t, time.Minute)
	err := c.names.Create(ctx, bound, session, func(given string, opts []framework.CreateOption) error {
		if name = given; unknown {
			_, _ = bound.Create(ctx, "", nil, opts...) // it sends nothing, and is over
			return framework.ErrUnknownOutcome
		}
		_, err := bound.Create(ctx, directory+"/"+given, nil, opts...)
		return err
	}, framework.WithParents())
	if !unknown {
		must.OK(t, err)
	}
	return name
}

// TestALateCreateMeetsAZnodeOrNoSession: the outcomes of several creates are unknown, in one session or in
// several ones. When another create has succeeded, each of them can't be applied any more: its name is in
// use, or the ensemble has ended its session.
func TestALateCreateMeetsAZnodeOrNoSession(t *testing.T) {
	t.Parallel()
	for name, live := range map[string]func(t *testing.T, c *caller) (markers map[string]string){
		"in two sessions": func(t *testing.T, c *caller) map[string]string {
			first := c.create(t, true)
			markers := map[string]string{first: c.abandon(t)}
			if again := c.create(t, false); again != first {
				t.Errorf("the name %s, want that of the create of unknown outcome, %s", again, first)
			}
			second := c.create(t, true)
			markers[second] = c.abandon(t)
			return markers
		},
		"twice of one name": func(t *testing.T, c *caller) map[string]string {
			first := c.create(t, true)
			markers := map[string]string{first: c.abandon(t)}
			c.create(t, true) // of that name again
			c.create(t, false)
			second := c.create(t, true)
			markers[second] = c.abandon(t)
			return markers
		},
	} {
		recipetest.Subtest(t, name, func(t *testing.T, env *zkenv.Env) {
			route, other := env.Route(t), env.Client(t)
			c := &caller{Client: route.Client(t, framework.WithLeaseMargin(3*time.Second), framework.WithSessionTimeout(6*time.Second)), route: route}
			names, done := NamesOf(c.Client, directory)
			defer done()
			c.names = names
			markers := live(t, c)
			used := c.create(t, false)
			must.OK(t, other.Sync(t.Context(), "/"))
			for name, marker := range markers {
				_, exists, err := other.Exists(t.Context(), marker)
				must.OK(t, err)
				if exists && name != used {
					t.Errorf("the create of %s may still be applied, and its name is not in use", name)
				}
			}
		})
	}
}

// Another client makes a znode of the name that is drawn, or of one whose create has an unknown outcome. It stays,
// and the call's znode gets another name.
func TestAnotherClientsZnodeOfAnOwnNameStays(t *testing.T) {
	t.Parallel()
	for kind, opts := range map[string][]framework.CreateOption{"a persistent one": nil, "an ephemeral one": {framework.Ephemeral()}} {
		for _, former := range []bool{false, true} {
			recipetest.Subtest(t, fmt.Sprintf("%s, former %v", kind, former), func(t *testing.T, env *zkenv.Env) {
				route, other := env.Route(t), env.Client(t)
				c := &caller{Client: route.Client(t, framework.WithLeaseMargin(3*time.Second), framework.WithSessionTimeout(6*time.Second)), route: route}
				names, done := NamesOf(c.Client, directory)
				defer done()
				must.Get(other.CreateOrSet(t.Context(), directory, nil))(t)
				taken := rand.Text()
				if c.names = names; former {
					taken = c.create(t, true)
					c.abandon(t)
				} else {
					names.change(func() { names.names[taken] = &name{unknown: []unknownCreate{{session: -1}}} })
				}
				must.Get(other.Create(t.Context(), directory+"/"+taken, []byte("theirs"), opts...))(t)
				used := c.create(t, false)
				data, _, err := other.Get(t.Context(), directory+"/"+taken)
				if err != nil || string(data) != "theirs" || used == taken {
					t.Errorf("the name %s; the other client's znode %s has %q, %v", used, taken, data, err)
				}
			})
		}
	}
}
