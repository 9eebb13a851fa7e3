package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/recipes/group"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/partition"
	"github.com/docent-go/docent/testing/zkserver"
)

// The fleets of TestConvergence. A settle time is longer than the time between two restarts, so the
// members never settle while they are restarted.
const (
	sessionTimeout = 10 * time.Second
	commitTime     = 2 * time.Millisecond // of the ensemble
	settleTime     = 5 * time.Second      // of partitions
	restartPause   = 4500 * time.Millisecond
	fleetKeys      = 120 // of partitions
)

// What bounds how long something may be wrong: requests alone, or the end of a dead process's session.
const (
	requests = 2 * fleetKeys * commitTime // a server takes those of a connection one after another
	deaths   = sessionTimeout + zkserver.DefaultTick + requests
)

// TestConvergence prints the tables of the recipes' pages: for how long keys have no server, or lists are
// not as they should be, when members come, leave, die and are restarted one after another. The longest
// time is bounded, whatever the number of members. With CONVERGENCE=1 there are fleets of 100, too.
func TestConvergence(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]func(*fleet, *process){
		"partition": (*fleet).serve, "group": (*fleet).join, "discovery": (*fleet).register, "cache": (*fleet).keep,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := []string{"", "| members | one joins | one leaves | one dies | all restarted in order | all die and restart |", "|--:|--:|--:|--:|--:|--:|"}
			for _, members := range fleets() {
				table = append(table, converge(t, kind, members))
			}
			t.Log(strings.Join(table, "\n"))
		})
	}
}

// fleets returns how many members there are. The largest fleet takes minutes.
func fleets() []int {
	all := []int{3, 10, 30, 100}
	if os.Getenv("CONVERGENCE") == "" {
		return all[:3]
	}
	return all
}

// converge returns the line of the table for a fleet.
func converge(t *testing.T, kind func(*fleet, *process), members int) (line string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{
			t: t, server: zkserver.Run(t, zkserver.WithCommitTime(commitTime)), kind: kind,
			servers: make(map[string]*process), since: make(map[any]time.Time),
		}
		for range members {
			f.start()
		}
		<-time.After(20 * settleTime)
		line = fmt.Sprintf("| %d |", members)
		phase := func(bound time.Duration, do func()) {
			f.reset()
			do()
			<-time.After(2 * deaths)
			line += f.report(bound) + " |"
		}
		again := func(end func()) func() {
			return func() {
				for range members {
					end()
					f.start()
					<-time.After(restartPause)
				}
			}
		}
		phase(requests, f.start)
		phase(requests, f.leave)
		phase(deaths, f.die)
		f.start()
		<-time.After(20 * settleTime)
		phase(requests, again(f.leave))
		phase(3*deaths, again(f.die)) // who is to have a key may have died, too, and no member knows yet
		for len(f.all) > 0 {
			f.leave()
		}
		f.dead.Wait()
	})
	return line
}

// A fleet is the processes that take part in something, and what is wrong with it at present: keys that
// no process serves, or what a process wrongly shows of another.
type fleet struct {
	t      *testing.T
	server *zkserver.Server
	kind   func(*fleet, *process)
	all    []*process
	begun  int
	dead   sync.WaitGroup

	mu             sync.Mutex          // guards following
	servers        map[string]*process // of keys
	since          map[any]time.Time   // what is wrong, a key or a process, and since when
	total, longest time.Duration       // that something was wrong, since the last reset
}

// A process is a member of the fleet.
type process struct {
	id     string
	client *framework.Client
	end    func() // leaves in order; it has to return when the server is away

	listed bool            // it has a list of the processes
	list   map[string]bool // of ids, as it has it; guarded by fleet.mu

	mu    sync.Mutex // guards following
	died  bool
	conns []net.Conn
}

// dial connects the process to the server, until it dies.
func (p *process) dial(ctx context.Context, network, addr string, server *zkserver.Server) (net.Conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.died {
		return nil, errors.New("the process has died")
	}
	conn, err := server.Dial(ctx, network, addr)
	p.conns = append(p.conns, conn)
	return conn, err
}

// start starts a process.
func (f *fleet) start() {
	f.begun++
	p := &process{id: fmt.Sprintf("process-%04d", f.begun)}
	p.client = must.Get(framework.NewClient(f.server.Addr(), framework.WithSessionTimeout(sessionTimeout),
		framework.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			return p.dial(ctx, network, addr, f.server)
		})))(f.t)
	f.mu.Lock()
	f.all = append(f.all, p)
	f.mu.Unlock()
	f.kind(f, p)
	f.changed(p.id, true)
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, one := range f.all {
		if p.listed {
			f.setLocked(sight{p, one.id}, p.list[one.id])
		}
	}
}

// remove removes the oldest process. The fleet should have noticed at once.
func (f *fleet) remove(died bool) *process {
	f.mu.Lock()
	p := f.all[0]
	f.all = f.all[1:]
	maps.DeleteFunc(f.since, func(what any, _ time.Time) bool {
		one, is := what.(sight)
		return is && one.by == p
	})
	for key, server := range f.servers {
		if died && server == p {
			f.servedLocked(key, nil)
		}
	}
	f.mu.Unlock()
	f.changed(p.id, false)
	return p
}

// leave has the oldest process leave in order.
func (f *fleet) leave() {
	p := f.remove(false)
	p.end()
	must.OK(f.t, p.client.Close())
}

// die kills the oldest process: its connections end, and it never comes back.
func (f *fleet) die() {
	p := f.remove(true)
	p.mu.Lock()
	p.died = true
	for _, conn := range p.conns {
		_ = conn.Close()
	}
	p.mu.Unlock()
	f.dead.Go(func() {
		p.end()
		_ = p.client.Close()
	})
}

// served notes which process serves the key; nil for none.
func (f *fleet) servedLocked(key string, by *process) {
	if f.servers[key] = by; by == nil {
		f.setLocked(key, false)
		return
	}
	f.setLocked(key, true)
}

// setLocked notes whether the key or the sight is as it should be.
func (f *fleet) setLocked(what any, right bool) {
	since, wrong := f.since[what]
	switch {
	case right && wrong:
		took := time.Since(since)
		f.total, f.longest = f.total+took, max(f.longest, took)
		delete(f.since, what)
	case !right && !wrong:
		f.since[what] = time.Now()
	}
}

// A sight is what a process shows of another one, or of itself.
type sight struct {
	by *process
	of string
}

// changed judges what all processes show of the one with the id, which has come or gone.
func (f *fleet) changed(id string, there bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.all {
		if p.listed {
			f.setLocked(sight{p, id}, p.list[id] == there)
		}
	}
}

// lists judges the list that the process has.
func (f *fleet) lists(p *process, ids []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := p.list
	p.list = make(map[string]bool)
	for _, id := range ids {
		p.list[id] = true
	}
	if !slices.Contains(f.all, p) {
		return
	}
	for _, one := range f.all {
		f.setLocked(sight{p, one.id}, p.list[one.id])
		delete(before, one.id)
	}
	for id := range before {
		f.setLocked(sight{p, id}, !p.list[id])
	}
	for id := range p.list {
		if !before[id] && !slices.ContainsFunc(f.all, func(one *process) bool { return one.id == id }) {
			f.setLocked(sight{p, id}, false) // it came after the other had gone
		}
	}
}

func (f *fleet) reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.since) > 0 {
		f.t.Errorf("still wrong: %v", slices.Collect(maps.Keys(f.since)))
	}
	f.total, f.longest = 0, 0
}

// report returns for how long all that was wrong was so in sum, and the longest time.
func (f *fleet) report(bound time.Duration) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.longest > bound {
		f.t.Errorf("%d processes: the longest time is %v, want %v at most", len(f.all), f.longest, bound)
	}
	return fmt.Sprintf(" %.2f (%.3f)", f.total.Seconds(), f.longest.Seconds())
}

// serve has the process serve keys.
func (f *fleet) serve(p *process) {
	keys := make([]string, fleetKeys)
	for i := range keys {
		keys[i] = fmt.Sprint("key-", i)
	}
	member := must.Get(partition.New(p.client, "/fleet", keys, partition.WithID(p.id), recipes.WithSettle(settleTime)))(f.t)
	ctx, cancel := context.WithCancel(f.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = member.Run(ctx, func(ctx context.Context, key string, _ *lease.Lease) error {
			f.mu.Lock()
			if other := f.servers[key]; other != nil {
				f.t.Errorf("%s is served by %s and by %s", key, other.id, p.id)
			}
			f.servedLocked(key, p)
			f.mu.Unlock()
			<-ctx.Done()
			f.mu.Lock()
			defer f.mu.Unlock()
			if f.servers[key] == p { // else the process has died
				f.servedLocked(key, nil)
			}
			return nil
		})
	}()
	p.end = func() { cancel(); <-ended }
}

// join has the process join a group, and follow it.
func (f *fleet) join(p *process) {
	g := must.Get(group.New(p.client, "/fleet"))(f.t)
	must.Get(g.Join(p.id, nil))(f.t)
	f.follow(p, func(ctx context.Context) {
		for members, err := range g.Changes(ctx) {
			must.OK(f.t, err)
			var list []string
			for _, m := range members {
				list = append(list, m.ID)
			}
			f.lists(p, list)
		}
	}, func(ctx context.Context) error { return g.Close(ctx) })
}

// register has the process register an instance, and watch the service.
func (f *fleet) register(p *process) {
	registry := must.Get(discovery.New[string](p.client, "/fleet"))(f.t)
	must.Get(registry.Register(discovery.Instance[string]{Name: "web", ID: p.id}))(f.t)
	service := must.Get(registry.Watch("web"))(f.t)
	f.follow(p, func(ctx context.Context) {
		for instances, err := range service.Changes(ctx) {
			must.OK(f.t, err)
			var list []string
			for _, in := range instances {
				list = append(list, in.ID)
			}
			f.lists(p, list)
		}
	}, registry.Close)
}

// keep has the process create an ephemeral znode, and cache them all.
func (f *fleet) keep(p *process) {
	tree := must.Get(cache.New(p.client, "/fleet", cache.WithDepth(1)))(f.t)
	f.follow(p, func(ctx context.Context) {
		_, err := p.client.Create(ctx, "/fleet/"+p.id, nil, framework.Ephemeral(), framework.WithParents())
		must.OK(f.t, err)
		for s, err := range tree.Snapshots(ctx) {
			must.OK(f.t, err)
			var list []string
			for id := range s.Children("/fleet") {
				list = append(list, id)
			}
			f.lists(p, list)
		}
	}, func(context.Context) error {
		return errors.Join(tree.Close(), p.client.Close())
	})
}

// follow runs what follows a list until the process ends by stop.
func (f *fleet) follow(p *process, run func(context.Context), stop func(context.Context) error) {
	p.listed = true
	ctx, cancel := context.WithCancel(f.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		run(ctx)
	}()
	p.end = func() {
		cancel()
		<-ended
		limited, cancel := context.WithTimeout(f.t.Context(), time.Second)
		defer cancel()
		_ = stop(limited) // a process that has died has no server
	}
}
