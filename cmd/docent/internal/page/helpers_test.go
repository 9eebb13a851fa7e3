package page_test

import (
	"context"
	"iter"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/cmd/docent/internal/page"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lease"
)

const token = "correct-horse-battery"

// A script is a source that gives the views that a test shows.
type script chan inspect.View

func (s script) Views(ctx context.Context) iter.Seq[inspect.View] {
	return func(yield func(inspect.View) bool) {
		for {
			select {
			case v := <-s:
				if !yield(v) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

// A stand is a page that is served on loopback.
type stand struct {
	script
	base  string
	token string
}

// serve serves a page until the test has ended.
func serve(t testing.TB, change func(*page.Config)) *stand {
	t.Helper()
	return serveOn(t, must.Get(net.Listen("tcp", "127.0.0.1:0"))(t), change)
}

func serveOn(t testing.TB, l net.Listener, change func(*page.Config)) *stand {
	t.Helper()
	s := &stand{make(script), "http://" + l.Addr().String(), token}
	cfg := page.Config{Source: s, Servers: "zk1:2181", Root: "/locks", Token: token, Hosts: []string{l.Addr().String()}}
	if change != nil {
		change(&cfg)
	}
	server := page.NewServer(cfg)
	ctx, cancel := context.WithCancel(context.Background()) // until the clean-up
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, l) }() // the clean-up waits for it
	t.Cleanup(func() {
		cancel()
		must.OK(t, <-served)
	})
	return s
}

// current returns a current view of the locks, in the order of their paths.
func current(at time.Time, locks ...inspect.Lock) inspect.View {
	locks = slices.SortedFunc(slices.Values(locks), func(a, b inspect.Lock) int { return strings.Compare(a.Path, b.Path) })
	return inspect.View{Snapshot: inspect.Snapshot{At: at, Locks: locks, Complete: true}, State: inspect.Current, Since: at}
}

// show shows a current view of the locks, twice: what is in both is confirmed.
func (s *stand) show(locks ...inspect.Lock) {
	now := time.Now()
	s.script <- current(now, locks...)
	s.script <- current(now.Add(2*time.Second), locks...)
}

// published shows the locks until the page has published them, confirmed: it takes a view when it has
// published the one before.
func (s *stand) published(locks ...inspect.Lock) {
	s.show(locks...)
	s.script <- current(time.Now().Add(2*time.Second), locks...)
}

// mutex returns a lock whose contenders are of these owners, the holder first.
func mutex(path string, owners ...string) inspect.Lock {
	l := inspect.Lock{Path: path, Kind: inspect.Mutex, Permits: 1, Complete: true}
	for i, owner := range owners {
		c := inspect.Contender{
			Znode: path + "/" + owner, State: inspect.Holds, Side: inspect.Alone, By: inspect.Docent,
			Session: int64(len(owner)) + 7, Czxid: int64(100 + i), Created: time.UnixMilli(1_700_000_000_000),
			Meta: &lease.Metadata{Version: 1, Owner: owner, Host: "host", PID: 17, Party: owner, Data: []byte("secret data")},
		}
		if i > 0 {
			c.State, c.WaitsFor = inspect.Waits, []string{l.Contenders[i-1].Znode}
		}
		l.Contenders = append(l.Contenders, c)
	}
	return l
}
