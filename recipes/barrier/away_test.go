package barrier_test

import (
	"slices"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/testing/zktest"
)

const (
	shortSession = 4 * time.Second
	away         = 7 * time.Second // longer than the session's time
)

// TestMembersThatComeAgainAfterTheServersWereAwayAreCountedOnce kills all servers for longer than a
// session. The clients have abandoned their sessions by then, and the servers, once started again, give
// each of these sessions its whole time.
func TestMembersThatComeAgainAfterTheServersWereAwayAreCountedOnce(t *testing.T) {
	t.Parallel()
	t.Run("standalone", func(t *testing.T) {
		t.Parallel()
		s := zktest.Run(t)
		meetAcrossAnOutage(t, s.Addr(), func() { must.OK(t, s.Restart(t.Context())) }, s)
	})
	t.Run("ensemble", func(t *testing.T) {
		t.Parallel()
		e := zktest.RunEnsemble(t, 3)
		meetAcrossAnOutage(t, e.Addr(), func() { must.OK(t, e.Repair(t.Context())) }, e.Servers...)
	})
}

// meetAcrossAnOutage has two of three members wait at each of five barriers while the servers are away.
func meetAcrossAnOutage(t *testing.T, addr string, repair func(), servers ...*zktest.Server) {
	t.Helper()
	connect := func(opts ...framework.Option) *framework.Client {
		return recipetest.Client(t, addr, opts...)
	}
	members := []*framework.Client{
		connect(framework.WithSessionTimeout(shortSession)), connect(framework.WithSessionTimeout(shortSession)),
	}
	var paths []string
	var entering []<-chan recipetest.Outcome
	for range 5 {
		path := recipetest.Path(t)
		paths = append(paths, path)
		for _, c := range members {
			entering = append(entering, recipetest.Later(t.Context(), newDouble(t, c, path, 3).Enter))
		}
		recipetest.AwaitChildren(t, members[0], path, 2)
	}
	former := sessionsOf(members)
	for _, s := range servers {
		must.OK(t, s.Kill())
	}
	<-time.After(away)
	repair()

	last := connect()
	zktest.Eventually(t, 2*recipetest.Generous, "both members have come again to each barrier", func() bool {
		for i, one := range entering {
			if len(one) > 0 {
				t.Fatalf("member %d was let in at barrier %d, and the last one has not come", i%2, i/2)
			}
		}
		now := sessionsOf(members)
		return now[0] != former[0] && now[1] != former[1] &&
			!slices.ContainsFunc(paths, func(path string) bool { return !areOf(t, last, path, now) })
	})
	for _, path := range paths {
		entering = append(entering, recipetest.Later(t.Context(), newDouble(t, last, path, 3).Enter))
	}
	for _, one := range entering {
		recipetest.Granted(t, one)
	}
}

func sessionsOf(clients []*framework.Client) (ids []int64) {
	for _, c := range clients {
		ids = append(ids, c.Session().ID)
	}
	return ids
}

// areOf tells whether each of the sessions has one member at the barrier, and no other session has.
func areOf(t *testing.T, c *framework.Client, path string, sessions []int64) bool {
	t.Helper()
	names, _, err := c.Children(t.Context(), path)
	if err != nil {
		return false
	}
	var owners []int64
	for _, name := range names {
		if st, ok, err := c.Exists(t.Context(), path+"/"+name); err == nil && ok {
			owners = append(owners, st.EphemeralOwner)
		}
	}
	slices.Sort(owners)
	return slices.Equal(owners, slices.Sorted(slices.Values(sessions)))
}
