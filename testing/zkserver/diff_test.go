package zkserver_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

var (
	diffOps  = flag.Int("zkserver.diffops", 24_000, "how many random operations to compare with a real ZooKeeper")
	diffSeed = flag.Uint64("zkserver.diffseed", 0, "seed of the comparison; 0 chooses one")
)

// Parameters of the comparison.
const (
	diffClients = 4
	diffBatch   = 40  // the most requests that one client pipelines
	diffEpoch   = 600 // requests below one root
	diffTimeout = 30 * time.Second
)

// For any requests, in any order, a client gets the answers and events of a ZooKeeper of the same version. They are
// equal down to error codes, stats and the order of events.
func TestDifferential(t *testing.T) {
	t.Parallel()
	// One of its own, as every client's session counts in its zxids; with TTL nodes,
	// and on neither side is a container removed while we look.
	peer := zktest.Run(t,
		zktest.WithSessionTimeouts(time.Second, time.Minute),
		zktest.WithContainerInterval(time.Hour),
		zktest.WithJVMFlags("-Dzookeeper.extendedTypesEnabled=true"))
	seed := *diffSeed
	if seed == 0 {
		seed = rand.Uint64() >> 32
	}
	t.Logf("seed %d: go test -run TestDifferential -zkserver.diffseed=%d -zkserver.diffops=%d", seed, seed, *diffOps)
	srv := zkserver.Run(t, zkserver.WithVersion(must.Get(zktest.Version())(t)), zkserver.WithReapInterval(time.Hour))
	d := &differential{
		t:   t,
		gen: &generator{rng: rand.New(rand.NewPCG(seed, 1))},
		fake: &side{name: "zkserver", labels: map[int64]int{}, dial: func(int) (net.Conn, error) {
			return srv.Dial(context.Background(), "", "")
		}},
		real: &side{name: "ZooKeeper", labels: map[int64]int{}, dial: func(int) (net.Conn, error) {
			return net.Dial("tcp", peer.Addr())
		}},
	}
	t.Cleanup(d.close)
	for range diffClients {
		d.connect(-1, diffTimeout)
	}
	for epoch := 0; d.ops < *diffOps; epoch++ {
		d.batch(0, []request{d.gen.newRoot(seed, epoch)})
		for end := d.ops + diffEpoch; d.ops < end; {
			d.step()
		}
	}
	t.Logf("%d operations, %d of them multis, %d failed; %d events", d.ops, d.multis, d.failed, d.events)
	if d.events < d.ops/50 || d.failed > d.ops*3/4 {
		t.Errorf("%d operations met only %d events and %d errors: the comparison says little", d.ops, d.events, d.failed)
	}
}

// A differential sends the same requests to two servers and compares what they say.
type differential struct {
	t          *testing.T
	gen        *generator
	fake, real *side
	members    int // how many servers each side has; 0 for a standalone one

	ops, multis, failed, events int
}

func (d *differential) sides() [2]*side { return [2]*side{d.fake, d.real} }

func (d *differential) close() {
	for _, s := range d.sides() {
		for _, c := range s.clients {
			c.nc.Close()
		}
	}
}

// step sends a batch by one of the clients, or has one reconnect.
func (d *differential) step() {
	who := d.gen.rng.IntN(diffClients)
	switch n := d.gen.rng.IntN(40); {
	case n == 0:
		d.resume(who, diffTimeout)
		return
	case n == 1:
		d.end(who)
		return
	}
	d.random(who)
}

// random sends a random batch by one of the clients.
func (d *differential) random(who int) {
	d.t.Helper()
	var batch []request
	for range 1 + d.gen.rng.IntN(diffBatch) {
		r := d.next()
		if r.op == auth {
			// ZooKeeper answers it at once, before what came before it.
			d.batch(who, []request{r})
			return
		}
		batch = append(batch, r)
		if r.op == setACL {
			break // until it is answered, ZooKeeper 3.8 uses the old list
		}
	}
	d.batch(who, batch)
}

// connect opens a session in the place of client who, or a further one.
func (d *differential) connect(who int, timeout time.Duration) {
	d.t.Helper()
	member := d.member()
	for _, s := range d.sides() {
		c, err := s.connect(member, timeout, 0, nil)
		if err != nil {
			d.t.Fatalf("%s: connect: %v", s.name, err)
		}
		if who < 0 {
			s.clients = append(s.clients, c)
		} else {
			s.clients[who] = c
		}
	}
}

// resume cuts the client's connection and resumes its session on a new one.
func (d *differential) resume(who int, timeout time.Duration) {
	d.t.Helper()
	member := d.member()
	for _, s := range d.sides() {
		old := s.clients[who]
		old.nc.Close()
		c, err := s.resume(member, timeout, old)
		for err == nil && d.members > 0 && c.session == old.session && !c.serves(d.t) {
			c.nc.Close()
			c, err = s.resume(member, timeout, old)
		}
		if err != nil {
			d.t.Fatalf("%s: resume: %v", s.name, err)
		}
		if c.session != old.session {
			d.t.Fatalf("%s: resumed session %#x as %#x", s.name, old.session, c.session)
		}
		c.xid = old.xid // as clients do: ZooKeeper pairs a commit with a request by session and xid
		s.clients[who] = c
	}
}

// end closes the client's session and opens another.
func (d *differential) end(who int) {
	d.t.Helper()
	d.endSession(who)
	d.connect(who, diffTimeout)
}

func (d *differential) endSession(who int) {
	d.t.Helper()
	d.compare(who, []request{plain(closeSession)}, true)
	for _, s := range d.sides() {
		if _, err := s.clients[who].receive(); err == nil {
			d.t.Fatalf("%s: the connection outlives its session", s.name)
		}
		s.clients[who].nc.Close()
	}
}

func (d *differential) batch(who int, batch []request) {
	d.t.Helper()
	d.compare(who, batch, false)
}

// compare sends the batch, and then a ping by each other client, which brings all
// events that the batch has caused. Ephemeral nodes go in any order when a session
// ends: the events that this causes are compared sorted.
func (d *differential) compare(who int, batch []request, sorted bool) {
	d.t.Helper()
	var lines [2][]string
	for i, s := range d.sides() {
		lines[i] = d.exchange(s, who, batch, sorted)
		for other := range s.clients {
			if other != who {
				lines[i] = append(lines[i], d.exchange(s, other, []request{d.flush()}, sorted)...)
			}
		}
	}
	d.judge(lines, who, batch)
}

// judge compares what both sides have said.
func (d *differential) judge(lines [2][]string, who int, batch []request) {
	d.t.Helper()
	d.ops += len(batch)
	for i := range max(len(lines[0]), len(lines[1])) {
		got, want := at(lines[0], i), at(lines[1], i)
		if got != want {
			d.t.Fatalf("after %d operations, line %d of the batch:\n zkserver  %s\n ZooKeeper %s\nbefore:\n %s\nrequests of client %d:\n %s",
				d.ops, i, got, want, strings.Join(lines[1][max(0, i-12):i], "\n "), who, describe(d.fake, batch))
		}
	}
	for _, line := range lines[0] {
		switch {
		case strings.HasPrefix(line, "event"):
			d.events++
		case !strings.Contains(line, " err 0 "):
			d.failed++
		}
		if strings.HasPrefix(line, "op 14 ") {
			d.multis++
		}
	}
}

// describe lists requests.
func describe(s *side, batch []request) string {
	var b strings.Builder
	for _, r := range batch {
		fmt.Fprintf(&b, "%d %.200q\n ", r.op, fmt.Sprint(r.fields(s)...))
	}
	return b.String()
}

func at(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return "nothing"
}

// exchange sends requests and returns what comes back, rendered.
func (d *differential) exchange(s *side, who int, batch []request, sorted bool) []string {
	d.t.Helper()
	if d.members > 0 && batch[0].op != auth && !batch[0].flush {
		batch = append([]request{d.flush()}, batch...) // so that the server has seen all that went before
	}
	if d.members > 0 {
		last := fmt.Sprintf("client %d at %v: %s", who, s.clients[who].nc.RemoteAddr(), describe(d.fake, batch))
		s.history = append(s.history[max(0, len(s.history)-8):], last)
	}
	c := s.clients[who]
	if err := c.nc.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		d.t.Fatal(err)
	}
	for _, r := range batch {
		if _, err := c.send(r.op, r.fields(s)...); err != nil {
			d.t.Fatalf("%s: send op %d: %v", s.name, r.op, err)
		}
	}
	var lines, events []string
	for i := 0; i < len(batch); {
		got, err := c.receive()
		if err != nil {
			d.t.Fatalf("%s: client %d: answer to op %d: %v\nbefore:\n %s\nlast:\n%s", s.name, who, batch[i].op, err, strings.Join(lines, "\n "), strings.Join(s.history, "\n"))
		}
		line := s.render(batch[i].op, got)
		if got.xid != -1 {
			i++
		} else if sorted {
			events = append(events, line)
			continue
		}
		lines = append(lines, line)
	}
	slices.Sort(events)
	return append(events, lines...)
}
