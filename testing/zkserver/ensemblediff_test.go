package zkserver_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zktest"
)

var ensembleOps = flag.Int("zkserver.ensembleops", 2*diffEpoch, "how many random operations to compare with a real ensemble")

// compareEnsembles sends the same random requests to two ensembles in the same state. Its clients
// are spread over the members and move between them.
func compareEnsembles(t *testing.T, fake, real ensemble, operations int) {
	t.Helper()
	seed := *diffSeed
	if seed == 0 {
		seed = rand.Uint64() >> 32
	}
	t.Logf("seed %d: go test -run TestEnsembles -zkserver.diffseed=%d -zkserver.ensembleops=%d", seed, seed, operations)
	d := &ensembleDiff{differential: differential{
		t: t, gen: &generator{rng: rand.New(rand.NewPCG(seed, 2)), lasting: true}, members: members,
		fake: newSide(t, "zkserver", fake), real: newSide(t, "ZooKeeper", real),
	}}
	t.Cleanup(d.close)
	keepAwake(t, d.real)
	for i, s := range d.sides() {
		admin := must.Get(s.connect(0, time.Minute, 0, nil))(t)
		d.admins[i] = admin
	}
	for range diffClients {
		d.connect(-1, diffTimeout)
	}
	for epoch := 0; d.ops < operations; epoch++ {
		d.batch(0, []request{d.gen.newRoot(seed, epoch)})
		for end := d.ops + diffEpoch; d.ops < end; {
			d.step()
		}
		d.count(epoch % diffClients)
		d.expire(epoch % diffClients)
		d.reap(epoch % diffClients)
	}
	t.Logf("%d operations, %d of them multis, %d failed; %d events", d.ops, d.multis, d.failed, d.events)
	if d.events < d.ops/100 || d.ended == 0 || d.counted == 0 {
		t.Errorf("%d operations met only %d events, %d expiries, %d ends of the counter: the comparison says little",
			d.ops, d.events, d.ended, d.counted)
	}
}

// newSide returns an ensemble as a side, whose member 0 is the leader.
func newSide(t *testing.T, name string, e ensemble) *side {
	t.Helper()
	leader := e.leader(t)
	return &side{name: name, labels: map[int64]int{}, dial: func(member int) (net.Conn, error) {
		return e.dial((leader + member) % members)
	}}
}

// keepAwake pings each member of the side ten times a second until the test ends. A member of
// ZooKeeper 3.8.0 may leave a committed transaction unapplied, and its client without an answer,
// until another request reaches that member (ZOOKEEPER-4537). Users' clients send pings; the
// clients of the comparison send none.
func keepAwake(t *testing.T, s *side) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var pings sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		pings.Wait()
	})
	for member := range members {
		c := must.Get(s.connect(member, time.Minute, 0, nil))(t)
		pings.Go(func() { // ends with the test, or with the connection
			defer c.nc.Close()
			for ctx.Err() == nil {
				if _, err := c.send(ping); err != nil {
					return
				}
				if _, err := c.receive(); err != nil {
					return
				}
				select {
				case <-time.After(100 * time.Millisecond):
				case <-ctx.Done():
				}
			}
		})
	}
}

// An ensembleDiff is a differential whose sides have several members. Administrators, whose
// requests are not compared, wait for what the members do by themselves.
type ensembleDiff struct {
	differential
	admins         [2]*client // at the leaders
	ended, counted int
}

func (d *ensembleDiff) step() {
	d.t.Helper()

	who := d.gen.rng.IntN(diffClients)
	switch n := d.gen.rng.IntN(40); {
	case n < 4:
		d.resume(who, diffTimeout)
	case n == 4:
		d.end(who)
	case n < 8:
		d.count(who)
	default:
		d.random(who)
	}
}

// count creates past the end of the numbers, with nothing outstanding.
func (d *ensembleDiff) count(who int) {
	d.t.Helper()

	for _, admin := range d.admins {
		admin.call(d.t, del, "/none", -1) // what the leader has answered is in its tree
	}
	d.batch(who, []request{plain(create, endPath+"/n", []byte(nil), open(), 2+d.gen.rng.IntN(2))})
	if d.gen.chance(50) {
		d.batch(who, []request{plain(del, endPath+"/n2147483647", -1)})
	}
	d.counted++
}

// expire has a session end because its client sends nothing, after a move. It is a new session: a
// member that a session has left may yet pass on a touch with a longer timeout.
func (d *ensembleDiff) expire(who int) {
	d.t.Helper()

	const timeout = 8 * ticks
	mark := fmt.Sprintf("%s-mark", d.gen.root)
	d.endSession(who)
	d.connect(who, timeout)
	d.batch(who, []request{plain(create, mark, []byte(nil), open(), 1), plain(create, mark+"2", []byte(nil), open(), 1)})
	d.batch((who+1)%diffClients, []request{plain(exists, mark, true), plain(exists, mark+"2", true)})
	d.resume(who, timeout)
	for _, s := range d.sides() {
		s.clients[who].nc.Close()
	}
	d.awaitGone(mark)
	d.connect(who, diffTimeout)
	d.compare(who, []request{plain(getChildren2, "/", false)}, true)
	d.ended++
}

// reap has the server remove a container.
func (d *ensembleDiff) reap(who int) {
	d.t.Helper()

	box := fmt.Sprintf("%s-box", d.gen.root)
	d.batch(who, []request{plain(createContainer, box, []byte(nil), open(), 4), plain(create, box+"/a", []byte(nil), open(), 0)})
	d.batch((who+1)%diffClients, []request{plain(exists, box, true), plain(getChildren, box, true)})
	var lines [2][]string
	for i, s := range d.sides() {
		lines[i] = d.exchange(s, who, []request{plain(del, box+"/a", -1)}, true)
	}
	d.awaitGone(box)
	for i, s := range d.sides() {
		for client := range s.clients {
			lines[i] = append(lines[i], d.exchange(s, client, []request{d.flush()}, true)...)
		}
	}
	d.judge(lines, who, []request{plain(del, box+"/a", -1)})
}

// awaitGone waits until a node is gone on both sides.
func (d *ensembleDiff) awaitGone(path string) {
	d.t.Helper()

	for _, admin := range d.admins {
		zktest.Eventually(d.t, 30*time.Second, path+" goes", func() bool { return !admin.has(d.t, path) })
	}
}

// member draws where a client connects to.
func (d *differential) member() int {
	if d.members == 0 {
		return 0
	}
	return d.gen.rng.IntN(d.members)
}

// flush is a request behind which nothing is left that has happened before. With several
// members it has to be one that goes through all of them.
func (d *differential) flush() request {
	r := plain(ping)
	if d.members > 0 {
		r = plain(del, "/none", -1)
	}
	r.flush = true
	return r
}

// next draws a request. The znodes of the ensemble's configuration differ, so it avoids them.
func (d *differential) next() request {
	for {
		r := d.gen.next()
		if d.members == 0 || !bytes.Contains(body(r.fields(d.fake)...), []byte("zookeeper")) {
			return r
		}
	}
}
