package args_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/recipes/group"
	"github.com/docent-go/docent/recipes/partition"
)

// Every recipe that makes a znode's name of a text refuses, when it gets the text, what no znode can be
// named, and says which text it is.
func TestNamesAreRefusedWhenTheyAreGiven(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newEnvironment(t)
		g := must.Get(group.New(w.client, "/names/group"))(t)
		defer g.Close(t.Context())
		services := must.Get(discovery.New[int](w.client, "/names/services"))(t)
		defer services.Close(t.Context())
		takers := map[string]func(name string) error{
			"id of a partition": func(name string) error {
				_, err := partition.New(w.client, "/names/partition", []string{"a"}, partition.WithID(name))
				return err
			},
			"key of a partition": func(name string) error {
				_, err := partition.New(w.client, "/names/partition", []string{name})
				return err
			},
			"id of a group": func(name string) error {
				_, err := g.Join(name, nil)
				return err
			},
			"name of an instance": func(name string) error {
				_, err := services.Register(discovery.Instance[int]{Name: name, ID: "a"})
				return err
			},
			"ID of an instance": func(name string) error {
				_, err := services.Register(discovery.Instance[int]{Name: "web", ID: name})
				return err
			},
			"service to watch": func(name string) error {
				_, err := services.Watch(name)
				return err
			},
			"service to list": func(name string) error {
				_, err := services.Instances(t.Context(), name)
				return err
			},
		}
		for what, take := range takers {
			argument, _, _ := strings.Cut(what, " ")
			for _, name := range []string{"", "a/b", ".", "..", "a\x00b", "\xff", "a.docent-epoch", "a\nb", "\ue000"} {
				if what == "ID of an instance" && name == "" {
					continue // a random one
				}
				err := take(name)
				if want := fmt.Sprintf("%s %q: ", argument, name); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s, %q: %v, want an error with %q", what, name, err, want)
				}
			}
		}
	})
}
