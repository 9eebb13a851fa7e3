package recipes_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/framework/zktel"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/recipes/group"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/leader"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/recipes/model"
	"github.com/docent-go/docent/recipes/partition"
	"github.com/docent-go/docent/recipes/semaphore"
	"github.com/docent-go/docent/testing/zkserver"
)

// A foreign znode is what another program has written, and how the client that reads is configured.
type foreign struct {
	name   string
	data   string
	reader []framework.Option
	writer []framework.CreateOption
}

func foreigns() []foreign {
	private := framework.WithACL(acl.Entry{Perms: acl.All &^ acl.Read, Scheme: "world", ID: "anyone"})
	return []foreign{
		{name: "no gzip", data: `{"name":"web","id":"m"}`, reader: []framework.Option{framework.WithCompression()}},
		{name: "too large", data: strings.Repeat(" ", 20<<10), reader: []framework.Option{framework.WithMaxPacket(1<<20, 8<<10)}},
		{name: "no ACL", data: `{"name":"web","id":"m"}`, writer: []framework.CreateOption{private}},
		{name: "empty"},
		{name: "no JSON", data: "10.0.0.7"},
		{name: "other JSON", data: `["web","m"]`},
		{name: "other names", data: `{"Name":"web","ID":"m","Docent":1}`},
		{name: "other schema", data: `{"name":"web","id":"m","payload":"number","schema":7,"docent":"v2"}`},
	}
}

// A part is a recipe that reads many znodes. read makes two znodes of the reader's own, "a" and "z", around
// a foreign one, and returns the names of what the recipe shows, with the type of the error that comes with
// one, and what it reports otherwise.
type part struct {
	name string
	read func(t *testing.T, reader, writer *framework.Client, f foreign) (shown, reported []string)
}

// What can't be read hides nothing: every recipe that reads other programs' znodes shows all that it can
// read, and shows or names the others. With -v the test prints its table.
func TestWhatCannotBeReadHidesNothing(t *testing.T) {
	const (
		shown = "shown"
		named = "shown with its error"
		apart = "left out and reported"
	)
	bytes := func(unread string) map[string]string { // recipes that need no form of the data
		return map[string]string{"no gzip": unread, "too large": unread, "no ACL": unread}
	}
	forms := func(bad string) map[string]string { // those that do
		all := make(map[string]string)
		for _, f := range foreigns() {
			all[f.name] = bad
		}
		return all
	}
	want := map[string]map[string]string{
		"discovery.Registry.Instances": forms(apart), "discovery.Service.Instances": forms(apart),
		"cache.Values": forms(named),
		"group.Group":  bytes(named),
		"lock.Mutex":   bytes(named), "lock.RWMutex": bytes(named), "lock.SemaphoreMutex": bytes(named),
		"lock.UnfairMutex": bytes(named), "semaphore.Semaphore": bytes(named),
		"leader.Election": bytes(named), "leader.Election.Leader": bytes(named),
		"leader.Election.Observe":    {"too large": named, "no ACL": named}, // a Watch shows uncompressed data as it is
		"partition.Partition.Owners": forms(apart),                          // named if it can't be read, else no member
	}
	var table []string
	for _, p := range parts() {
		for _, f := range foreigns() {
			t.Run(p.name+"/"+f.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := zkserver.Run(t)
					reader := recipetest.Client(t, s.Addr(), append(f.reader, framework.WithDialer(s.Dial))...)
					writer := recipetest.Client(t, s.Addr(), framework.WithDialer(s.Dial))
					all, reported := p.read(t, reader, writer, f)
					own, got := []string{"a", "z"}, ""
					for _, one := range all {
						switch name, err, _ := strings.Cut(one, "!"); {
						case name == "m" && err == "":
							got = shown
						case name == "m":
							got = named
						case err == "":
							own = slices.DeleteFunc(own, func(n string) bool { return n == name })
						}
					}
					if got == "" && slices.Contains(reported, "m") {
						got = apart
					}
					expected := want[p.name][f.name]
					if expected == "" {
						expected = shown
					}
					if len(own) > 0 || got != expected {
						t.Errorf("hidden %q, and the foreign znode is %q, want %q: %q, %q", own, got, expected, all, reported)
					}
					table = append(table, fmt.Sprintf("| `%s` | %s | %s |", p.name, f.name, got))
				})
			})
		}
	}
	t.Log("\n| recipe | znode of another program | what becomes of it |\n|---|---|---|\n" + strings.Join(table, "\n"))
}

// contend makes three contenders' znodes.
func contend(t *testing.T, reader, writer *framework.Client, f foreign, path string) (names map[string]string) {
	t.Helper()
	names = make(map[string]string)
	for _, name := range []string{"a", "m", "z"} {
		c, data, opts := reader, "", []framework.CreateOption{framework.Ephemeral(), framework.Sequential(), framework.Protected(), framework.WithParents()}
		if name == "m" {
			c, data, opts = writer, f.data, append(opts, f.writer...)
		}
		names[must.Get(c.Create(t.Context(), path, []byte(data), opts...))(t)] = name
	}
	return names
}

// participants returns what a lock shows of three contenders.
func participants(path string, of func(c *framework.Client) (func(context.Context) ([]lease.Participant, error), error)) func(*testing.T, *framework.Client, *framework.Client, foreign) ([]string, []string) {
	return func(t *testing.T, reader, writer *framework.Client, f foreign) (all, _ []string) {
		names := contend(t, reader, writer, f, path)
		found := must.Get(must.Get(of(reader))(t)(t.Context()))(t)
		for i, p := range found {
			all = append(all, shownAs(names[p.Path], p.Err))
			if p.Path == "" || p.Kind == "" || p.Sequence != int64(i) || p.Holder != (i == 0) {
				t.Errorf("participant %d: %+v", i, p)
			}
		}
		return all, nil
	}
}

func shownAs(name string, err error) string {
	if err != nil {
		name += "!" + zktel.ErrorType(err)
	}
	return name
}

func parts() []part {
	type participantsOf = func(context.Context) ([]lease.Participant, error)
	return []part{
		{"discovery.Registry.Instances", instances(func(t *testing.T, r *discovery.Registry[string]) []discovery.Instance[string] {
			return must.Get(r.Instances(t.Context(), "web"))(t)
		})},
		{"discovery.Service.Instances", instances(func(t *testing.T, r *discovery.Registry[string]) []discovery.Instance[string] {
			s := must.Get(r.Watch("web"))(t)
			must.OK(t, s.Ready(t.Context()))
			return s.Instances()
		})},
		{"cache.Values", func(t *testing.T, reader, writer *framework.Client, f foreign) (all, _ []string) {
			must.Get(reader.Create(t.Context(), "/values", nil))(t)
			codec := model.Versioned[struct{ Name string }](1, nil)
			for _, name := range []string{"a", "z"} {
				data := must.Get(codec.Encode(struct{ Name string }{name}))(t)
				must.Get(reader.Create(t.Context(), "/values/"+name, data))(t)
			}
			must.Get(writer.Create(t.Context(), "/values/m", []byte(f.data), f.writer...))(t)
			tree := must.Get(cache.New(reader, "/values"))(t)
			defer tree.Close()
			must.OK(t, tree.Ready(t.Context()))
			for _, v := range cache.Of(tree, codec).All() {
				all = append(all, shownAs(strings.TrimPrefix(v.Path, "/values/"), v.Err))
			}
			return all, nil
		}},
		{"group.Group", func(t *testing.T, reader, writer *framework.Client, f foreign) (all, _ []string) {
			must.Get(reader.Create(t.Context(), "/group", nil))(t)
			must.Get(writer.Create(t.Context(), "/group/m", []byte(f.data), append(f.writer, framework.Ephemeral())...))(t)
			g := must.Get(group.New(reader, "/group"))(t)
			defer g.Close(t.Context())
			for _, id := range []string{"a", "z"} {
				must.OK(t, must.Get(g.Join(id, nil))(t).Await(t.Context()))
			}
			<-time.After(time.Second)
			for members, err := range g.Changes(t.Context()) {
				must.OK(t, err)
				for _, m := range members {
					all = append(all, shownAs(m.ID, m.Err))
				}
				break
			}
			if ids := slices.Collect(maps.Keys(maps.Collect(g.Members()))); len(ids) != 3 {
				t.Errorf("Members: %q", ids)
			}
			return all, nil
		}},
		{"lock.Mutex", participants("/lock/lock-", func(c *framework.Client) (participantsOf, error) {
			m, err := lock.NewMutex(c, "/lock")
			return m.Participants, err
		})},
		{"lock.RWMutex", participants("/lock/__WRIT__", func(c *framework.Client) (participantsOf, error) {
			rw, err := lock.NewRWMutex(c, "/lock")
			return rw.Participants, err
		})},
		{"lock.SemaphoreMutex", participants("/lock/leases/lease-", func(c *framework.Client) (participantsOf, error) {
			m, err := lock.NewSemaphoreMutex(c, "/lock")
			return func(ctx context.Context) ([]lease.Participant, error) { return firstAlone(m.Participants(ctx)) }, err
		})},
		{"semaphore.Semaphore", participants("/lock/leases/lease-", func(c *framework.Client) (participantsOf, error) {
			s, err := semaphore.New(c, "/lock", 1)
			return func(ctx context.Context) ([]lease.Participant, error) { return firstAlone(s.Participants(ctx)) }, err
		})},
		{"lock.UnfairMutex", func(t *testing.T, reader, writer *framework.Client, f foreign) (all, _ []string) {
			must.Get(writer.Create(t.Context(), "/lock", []byte(f.data), append(f.writer, framework.Ephemeral())...))(t)
			found := must.Get(must.Get(lock.NewUnfairMutex(reader, "/lock"))(t).Participants(t.Context()))(t)
			if len(found) == 1 && found[0].Holder {
				all = append(all, shownAs("m", found[0].Err))
			}
			return append(all, "a", "z"), nil
		}},
		{"leader.Election", participants("/lock/latch-", func(c *framework.Client) (participantsOf, error) {
			e, err := leader.New(c, "/lock")
			return e.Participants, err
		})},
		{"leader.Election.Leader", func(t *testing.T, reader, writer *framework.Client, f foreign) (all, _ []string) {
			must.Get(reader.Create(t.Context(), "/lock", nil))(t)
			opts := append(f.writer, framework.Ephemeral(), framework.Sequential(), framework.Protected())
			at := must.Get(writer.Create(t.Context(), "/lock/latch-", []byte(f.data), opts...))(t)
			if p, ok, err := must.Get(leader.New(reader, "/lock"))(t).Leader(t.Context()); ok && err == nil && p.Path == at {
				all = append(all, shownAs("m", p.Err))
			}
			return append(all, "a", "z"), nil
		}},
		{"leader.Election.Observe", func(t *testing.T, reader, writer *framework.Client, f foreign) (all, _ []string) {
			must.Get(reader.Create(t.Context(), "/lock", nil))(t)
			var paths []string
			for _, name := range []string{"a", "m", "z"} {
				c, data, opts := reader, "", []framework.CreateOption{framework.Ephemeral(), framework.Sequential(), framework.Protected()}
				if name == "m" {
					c, data, opts = writer, f.data, append(opts, f.writer...)
				}
				paths = append(paths, must.Get(c.Create(t.Context(), "/lock/latch-", []byte(data), opts...))(t))
			}
			names := map[string]string{paths[0]: "a", paths[1]: "m", paths[2]: "z"}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			for p, ok := range must.Get(leader.New(reader, "/lock"))(t).Observe(ctx) { // each leads, and is gone
				if !ok {
					break
				}
				all = append(all, shownAs(names[p.Path], p.Err))
				must.OK(t, writer.Delete(ctx, p.Path))
			}
			return all, nil
		}},
		{"partition.Partition.Owners", func(t *testing.T, reader, writer *framework.Client, f foreign) (all, reported []string) {
			must.Get(writer.Create(t.Context(), "/fleet/keys/m", nil, framework.WithParents()))(t)
			opts := append(f.writer, framework.Ephemeral(), framework.Sequential(), framework.Protected())
			must.Get(writer.Create(t.Context(), "/fleet/keys/m/lock-", []byte(f.data), opts...))(t)
			p := must.Get(partition.New(reader, "/fleet", []string{"a", "z"}))(t)
			ctx, end := context.WithCancel(t.Context())
			var run sync.WaitGroup
			defer run.Wait()
			defer end()
			run.Go(func() {
				_ = p.Run(ctx, func(ctx context.Context, _ string, _ *lease.Lease) error { <-ctx.Done(); return nil })
			})
			<-time.After(time.Minute)
			owners, err := must.Get(partition.New(reader, "/fleet", []string{"a", "m", "z"}))(t).Owners(ctx)
			all = slices.Collect(maps.Keys(owners))
			if !slices.Contains(all, "m") && (err != nil || !unread(f)) {
				reported = []string{"m"}
			}
			return all, reported
		}},
	}
}

// unread reports whether the client can't read the znode at all.
func unread(f foreign) bool {
	return slices.Contains([]string{"no gzip", "too large", "no ACL"}, f.name)
}

// firstAlone returns the participants of one permit, of which the first alone holds: while there are more
// znodes than permits, those of the last attempt are no holders.
func firstAlone(all []lease.Participant, err error) ([]lease.Participant, error) {
	for i := range all {
		all[i].Holder = i == 0
	}
	return all, err
}

func instances(list func(t *testing.T, r *discovery.Registry[string]) []discovery.Instance[string]) func(*testing.T, *framework.Client, *framework.Client, foreign) ([]string, []string) {
	return func(t *testing.T, reader, writer *framework.Client, f foreign) (all, reported []string) {
		r := must.Get(discovery.New[string](reader, "/services", discovery.WithUnreadable(func(path string, _ error) {
			reported = append(reported, strings.TrimPrefix(path, "/services/web/"))
		})))(t)
		defer r.Close(t.Context())
		for _, id := range []string{"a", "z"} {
			must.OK(t, must.Get(r.Register(discovery.Instance[string]{Name: "web", ID: id}))(t).Await(t.Context()))
		}
		data := f.data
		if f.name == "other schema" {
			data = strings.Replace(data, `"number"`, "8", 1)
		}
		must.Get(writer.Create(t.Context(), "/services/web/m", []byte(data), f.writer...))(t)
		for _, in := range list(t, r) {
			all = append(all, in.ID)
		}
		return all, reported
	}
}

// Before the first read no recipe takes what it has for all that there is. In an outage after it each keeps what it
// has, and says since when it may be behind.
func TestWhatWasNeverReadIsNotFilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zkserver.Run(t)
		c := recipetest.Client(t, s.Addr(), framework.WithDialer(s.Dial))
		outage := func() { s.Refuse(); s.Cut(); <-time.After(time.Second) }
		outage()
		tree := must.Get(cache.New(c, "/all"))(t)
		defer tree.Close()
		g := must.Get(group.New(c, "/all"))(t)
		defer g.Close(t.Context())
		registry := must.Get(discovery.New[string](c, "/all"))(t)
		defer registry.Close(t.Context())
		service := must.Get(registry.Watch("web"))(t)
		defer service.Close()
		registered := must.Get(registry.Register(discovery.Instance[string]{Name: "web", ID: "a"}))(t)
		for what, await := range map[string]func(context.Context) error{
			"cache's Ready": tree.Ready, "service's Ready": service.Ready, "Await": registered.Await,
		} {
			recipetest.Fails(t, what+" without a server", await(recipetest.Within(t, 2*time.Second)), context.DeadlineExceeded)
		}
		want := func(want bool) {
			t.Helper()
			<-time.After(time.Minute)
			for name, filled := range map[string]func() bool{"cache": tree.Filled, "group": g.Filled, "service": service.Filled} {
				if filled() != want {
					t.Errorf("%s: Filled is %v", name, !want)
				}
			}
		}
		want(false)
		s.Accept()
		want(true)
		if found := service.Instances(); len(found) != 1 || found[0].ID != "a" {
			t.Errorf("the service has %v, want the instance that was registered without a server", found)
		}
		before := time.Now()
		outage()
		want(true)
		stale := map[string]func() (time.Time, bool){"cache": tree.Stale, "group": g.Stale, "service": service.Stale}
		for name, of := range stale {
			if since, is := of(); !is || since.Before(before) || since.After(before.Add(time.Second)) {
				t.Errorf("%s: stale %v since %v, in an outage since %v", name, is, since, before)
			}
		}
		if n, members := len(service.Instances()), len(maps.Collect(g.Members())); n != 1 || members != 1 {
			t.Errorf("in an outage there are %d instances and %d members, want those from before", n, members)
		}
		s.Accept()
		<-time.After(time.Minute)
		for name, of := range stale {
			if _, is := of(); is {
				t.Errorf("%s: stale after the outage", name)
			}
		}
	})
}
