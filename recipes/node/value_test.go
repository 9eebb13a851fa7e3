package node_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/model"
	"github.com/docent-go/docent/recipes/node"
	"github.com/docent-go/docent/testing/zkenv"
)

// TestValueIsKept: the znode has the latest value, even when another client has deleted it, and a value
// that does not encode changes nothing.
func TestValueIsKept(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		c, observer, path := env.Client(t), env.Client(t), recipetest.Path(t)+"/n"
		errEven := errors.New("must not be even")
		codec := model.JSON[int]()
		encode := codec.Encode
		codec.Encode = func(n int) ([]byte, error) {
			if n%2 == 0 {
				return nil, errEven
			}
			return encode(n)
		}
		if _, err := node.NewValue(c, path, 2, codec); !errors.Is(err, errEven) || !strings.Contains(err.Error(), path) {
			t.Errorf("NewValue of a value that does not encode: %v", err)
		}
		v := must.Get(node.NewValue(c, path, 1, codec))(t)
		t.Cleanup(func() { must.OK(t, v.Close(context.WithoutCancel(t.Context()))) })
		mustAwait(t, v.Node)
		mustHold(t, observer, c, path, "1")
		must.OK(t, v.Set(recipetest.Patient(t), 3))
		recipetest.Fails(t, "Set of a value that does not encode", v.Set(recipetest.Patient(t), 4), errEven)
		mustHold(t, observer, c, path, "3")
		j := follow(t, v.Node)
		must.OK(t, observer.Delete(t.Context(), path))
		j.awaitKinds(t, "Made Away Made")
		mustHold(t, observer, c, path, "3")
	}, zkenv.Only("the server has no part in it", zkenv.Embedded))
}
