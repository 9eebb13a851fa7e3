package recipes_test

import (
	"context"
	"iter"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/framework/zktel"
	"github.com/docent-go/docent/internal/cachebounds"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/recipes/counter"
	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/recipes/group"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/model"
	"github.com/docent-go/docent/recipes/node"
	"github.com/docent-go/docent/testing/zkserver"
)

// follow keeps the elements, each as show renders it, with the type of the error behind it. The function that it
// returns returns them.
func follow[T any](t *testing.T, all iter.Seq2[T, error], show func(T) string) func() []string {
	t.Helper()
	var mu sync.Mutex
	var seen []string
	go func() { // ends with the context of the sequence
		for v, err := range all {
			text := show(v)
			if err != nil {
				text += "!" + zktel.ErrorType(err)
			}
			mu.Lock()
			seen = append(seen, text)
			mu.Unlock()
		}
	}()
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(seen)
	}
}

// joined returns a function that renders a list.
func joined[T any](show func(T) string) func([]T) string {
	return func(all []T) string {
		var texts []string
		for _, one := range all {
			texts = append(texts, show(one))
		}
		return strings.Join(texts, " ")
	}
}

// A follower follows the znode /dir/x, whose data is the JSON of an instance with the address. The function that it
// returns returns the addresses that it has shown.
type follower func(t *testing.T, c *framework.Client) func() (addresses []string)

// A record is what is read of an instance.
type record struct {
	Address string `json:"address"`
}

func records() model.Codec[record] { return model.JSON[record]() }

func addressOf(data []byte) string {
	v, _ := records().Decode(data)
	return v.Address
}

// sequences are the followers of a directory that return what has changed as a sequence.
func sequences() map[string]follower {
	return map[string]follower{
		"a Service's Changes": func(t *testing.T, c *framework.Client) func() []string {
			r := must.Get(discovery.New[struct{}](c, "/"))(t)
			t.Cleanup(func() { _ = r.Close(context.Background()) })
			s := must.Get(r.Watch("dir"))(t)
			return follow(t, s.Changes(t.Context()), joined(func(one discovery.Instance[struct{}]) string { return one.Address }))
		},
		"a Group's Changes": func(t *testing.T, c *framework.Client) func() []string {
			g := must.Get(group.New(c, "/dir"))(t)
			t.Cleanup(func() { _ = g.Close(context.Background()) })
			return follow(t, g.Changes(t.Context()), joined(func(one group.Member) string { return addressOf(one.Data) }))
		},
		"a cache's Snapshots": func(t *testing.T, c *framework.Client) func() []string {
			made := must.Get(cache.New(c, "/dir"))(t)
			t.Cleanup(func() { _ = made.Close() })
			return follow(t, made.Snapshots(t.Context()), func(s *cache.Snapshot) string {
				n, _ := s.Get("/dir/x")
				return addressOf(n.Data)
			})
		},
	}
}

// others are the other followers.
func others() map[string]follower {
	return map[string]follower{
		"a Value's All": func(t *testing.T, c *framework.Client) func() []string {
			v := must.Get(counter.NewValue(c, "/dir/x", records()))(t)
			return follow(t, v.All(t.Context()), func(v record) string { return v.Address })
		},
		"a cache's values": func(t *testing.T, c *framework.Client) func() []string {
			made := must.Get(cache.New(c, "/dir"))(t)
			t.Cleanup(func() { _ = made.Close() })
			values := cache.Of(made, records())
			return func() []string {
				v, _ := values.Get("/dir/x")
				return []string{v.Address}
			}
		},
		"a cache's events": func(t *testing.T, c *framework.Client) func() []string {
			made := must.Get(cache.New(c, "/dir"))(t)
			t.Cleanup(func() { _ = made.Close() })
			var address atomic.Value
			made.OnEvent(func(e cache.Event) {
				if e.Path() == "/dir/x" {
					address.Store(addressOf(e.New.Data))
				}
			})
			return func() []string { return []string{address.Load().(string)} }
		},
		// A bounded cache may drop data.
		"the data of a bounded cache": func(t *testing.T, c *framework.Client) func() []string {
			made := must.Get(cache.New(c, "/dir", struct {
				cache.Option
				cachebounds.Bounds
			}{cache.WithDepth(1), cachebounds.Bounds{ByPath: func(string) bool { return true }}}))(t)
			t.Cleanup(func() { _ = made.Close() })
			return func() []string {
				n, _ := made.Get("/dir/x")
				return []string{addressOf(n.Data)}
			}
		},
	}
}

// An ensemble is what a client is connected to: one history, and after a restore another one.
type ensemble struct {
	serves atomic.Pointer[zkserver.Server]
}

func (e *ensemble) client(t *testing.T) *framework.Client {
	t.Helper()
	return clientOf(t, "zk:2181", framework.WithDialer(func(ctx context.Context, network, _ string) (net.Conn, error) {
		srv := e.serves.Load()
		return srv.Dial(ctx, network, srv.Addr())
	}))
}

// restore waits until the client has a session of the other history.
func (e *ensemble) restore(to *zkserver.Server) {
	from := e.serves.Swap(to)
	from.Refuse()
	from.Cut()
	<-time.After(time.Minute)
	synctest.Wait()
}

// history returns a server on which write has made what there is.
func history(t *testing.T, write func(c *framework.Client)) *zkserver.Server {
	t.Helper()
	srv := zkserver.Run(t)
	c := clientOf(t, srv.Addr(), framework.WithDialer(srv.Dial))
	write(c)
	must.OK(t, c.Close())
	return srv
}

// historyOf returns a server with the instance that a follower follows.
func historyOf(t *testing.T, address string) *zkserver.Server {
	t.Helper()
	return history(t, func(c *framework.Client) {
		must.Get(c.Create(t.Context(), "/dir", nil))(t)
		must.Get(c.Create(t.Context(), "/dir/x", []byte(`{"name":"dir","id":"x","address":"`+address+`"}`)))(t)
	})
}

// After a restore the transaction ids and versions of one history are those of another one. What follows a znode
// shows the new one.
func TestARestoredZnodeIsSeen(t *testing.T) {
	t.Parallel()
	all := sequences()
	maps.Copy(all, others())
	for name, follow := range all {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var e ensemble
				e.serves.Store(historyOf(t, "former"))
				shown := follow(t, e.client(t))
				<-time.After(time.Second)
				if got := shown(); !slices.Equal(got, []string{"former"}) {
					t.Fatalf("%q, want the former", got)
				}
				e.restore(historyOf(t, "restored"))
				if got := shown(); got[len(got)-1] != "restored" {
					t.Errorf("%q a minute after the restore", got)
				}
			})
		})
	}
}

// For an hour the client may not read what it follows, and its connection ends meanwhile. Each sequence says so once,
// with what it has, and goes on when the client may read that again.
func TestARefusalIsOneElement(t *testing.T) {
	t.Parallel()
	for name, follow := range sequences() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := historyOf(t, "a")
				owner := clientOf(t, srv.Addr(), framework.WithDialer(srv.Dial))
				shown := follow(t, clientOf(t, srv.Addr(), framework.WithDialer(srv.Dial)))
				<-time.After(time.Second)
				for _, perms := range []acl.Permission{acl.All &^ acl.Read, acl.All} {
					recipetest.Permit(t, owner, "/dir", perms)
					srv.Cut()
					<-time.After(time.Hour)
				}
				if got, want := shown(), []string{"a", "a!no_auth", "a"}; !slices.Equal(got, want) {
					t.Errorf("%q, want %q", got, want)
				}
			})
		})
	}
}

// A counter knows the number of the former history, and the version that it has in the restored one.
func TestACounterAddsToTheRestoredNumber(t *testing.T) {
	t.Parallel()
	for _, outage := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			of := func(delta int64) *zkserver.Server {
				return history(t, func(c *framework.Client) {
					n := must.Get(counter.New(c, "/n"))(t)
					for range 3 {
						must.Get(n.Add(t.Context(), delta))(t)
					}
				})
			}
			var e ensemble
			e.serves.Store(of(1))
			n := must.Get(counter.New(e.client(t), "/n"))(t)
			must.Get(n.Add(t.Context(), 1))(t)
			restored := of(100)
			other := must.Get(counter.New(clientOf(t, restored.Addr(), framework.WithDialer(restored.Dial)), "/n"))(t)
			must.Get(other.Add(t.Context(), 100))(t)
			added := make(chan int64, 1)
			if outage {
				e.serves.Load().Refuse()
				e.serves.Load().Cut()
				synctest.Wait()
				go func() { added <- must.Get(n.Add(t.Context(), 1))(t) }()
			}
			e.restore(restored)
			if !outage {
				added <- must.Get(n.Add(t.Context(), 1))(t)
			}
			if got := <-added; got != 401 {
				t.Errorf("%d after the addition (called in the outage: %v), want 401", got, outage)
			}
		})
	}
}

// A lasting Node writes its data again if the restored znode is as it was before, or of another history.
func TestALastingNodeWritesToTheRestoredZnode(t *testing.T) {
	t.Parallel()
	put := func(t *testing.T, c *framework.Client, path, data string) {
		t.Helper()
		must.Get(c.Create(t.Context(), path, []byte(data)))(t)
	}
	for name, otherHistory := range map[string]bool{"an earlier state": false, "another history": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var e ensemble
				e.serves.Store(history(t, func(c *framework.Client) { put(t, c, "/dir", "") }))
				c := e.client(t)
				n := must.Get(node.New(c, "/dir/x", []byte("first"), node.Persistent()))(t)
				must.OK(t, n.Await(t.Context()))
				must.OK(t, n.Set(t.Context(), []byte("mine")))
				former, _ := must.Get2(c.Exists(t.Context(), "/dir/x"))(t)
				<-time.After(time.Second)
				srv := history(t, func(c *framework.Client) {
					put(t, c, "/dir", "")
					put(t, c, "/other", "")
					put(t, c, "/another", "") // in the place of the session's beginning and end
					put(t, c, "/dir/x", "first")
					if otherHistory {
						must.Get(c.Set(t.Context(), "/dir/x", []byte("others"), framework.AnyVersion))(t)
					}
					st, _ := must.Get2(c.Exists(t.Context(), "/dir/x"))(t)
					if st.Czxid != former.Czxid || otherHistory && st.Mzxid != former.Mzxid {
						t.Errorf("czxid %d and mzxid %d, want those of the former %+v", st.Czxid, st.Mzxid, former)
					}
				})
				e.restore(srv)
				if data, _ := must.Get2(c.Get(t.Context(), "/dir/x"))(t); string(data) != "mine" {
					t.Errorf("the znode has %q a minute after the restore", data)
				}
				must.OK(t, n.Close(t.Context()))
			})
		})
	}
}

// The data of a restored znode is the Node's own, of an earlier moment: the function of WithAdoption is not asked.
func TestALastingNodeWritesToItsOwnRestoredZnode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		of := func() *zkserver.Server {
			return history(t, func(c *framework.Client) { must.Get(c.Create(t.Context(), "/dir", nil))(t) })
		}
		var e ensemble
		e.serves.Store(of())
		restored := of()
		c, other := e.client(t), clientOf(t, restored.Addr(), framework.WithDialer(restored.Dial))
		n := must.Get(node.New(c, "/dir/x", []byte("first"), node.Persistent(), node.WithAdoption(func([]byte) bool { return false })))(t)
		must.OK(t, n.Await(t.Context()))
		must.Get(other.Create(t.Context(), "/dir/x", []byte("first")))(t)
		st, _ := must.Get2(other.Exists(t.Context(), "/dir/x"))(t)
		if former, _ := must.Get2(c.Exists(t.Context(), "/dir/x"))(t); st.Czxid != former.Czxid || !st.Ctime.Equal(former.Ctime) {
			t.Fatalf("the restored znode is %+v, want the creation of %+v", st, former)
		}
		must.OK(t, n.Set(t.Context(), []byte("mine")))
		<-time.After(time.Second)
		e.restore(restored)
		if data, _ := must.Get2(c.Get(t.Context(), "/dir/x"))(t); string(data) != "mine" {
			t.Errorf("the znode has %q a minute after the restore", data)
		}
		must.OK(t, n.Close(t.Context()))
	})
}
