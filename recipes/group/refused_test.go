package group_test

import (
	"errors"
	"iter"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/testing/zkenv"
)

// TestChangesOutliveARefusedGroup: for a while the client may not read the group's path. Changes says so,
// with the members that are known, and goes on when it may.
func TestChangesOutliveARefusedGroup(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		route, other, path := env.Route(t), env.Client(t), recipetest.Path(t)
		g := newGroup(t, route.Client(t), path)
		mustJoin(t, g, "a", "1")
		next, stop := iter.Pull2(g.Changes(recipetest.Patient(t)))
		defer stop()
		var all []string
		read := func() error {
			t.Helper()
			members, err, ok := next()
			if !ok {
				t.Fatal("the sequence has ended")
			}
			all = nil
			for _, m := range members {
				all = append(all, m.ID)
			}
			return err
		}
		for len(all) == 0 {
			must.OK(t, read())
		}
		recipetest.Permit(t, other, path, acl.All&^acl.Read)
		route.Cut() // so that the group is read again
		err := read()
		for err == nil {
			err = read()
		}
		if !errors.Is(err, framework.ErrNoAuth) || len(all) != 1 {
			t.Errorf("Changes of a refused group: %v, %v; want the last members and ErrNoAuth", all, err)
		}
		recipetest.Permit(t, other, path, acl.All)
		for err != nil || len(all) != 2 {
			if err = read(); err == nil && len(all) == 1 {
				must.Get(other.Create(t.Context(), path+"/b", nil))(t)
			}
		}
	}, zkenv.Only("the refusal is every server's", zkenv.Embedded, zkenv.Standalone))
}
