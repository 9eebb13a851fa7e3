package schedule_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/schedule"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkserver"
)

// A diary has what became of each slot.
type diary struct {
	mu   sync.Mutex
	runs map[time.Time]*slotRuns
}

type slotRuns struct {
	working  int // at this moment
	begun    int
	returned int // nil, within the lease
	recorded int // calls that returned Ran without an error
	lost     int // calls that returned LostInTheMiddle, or could not record the end
}

func (d *diary) of(at time.Time) *slotRuns {
	if d.runs[at] == nil {
		d.runs[at] = new(slotRuns)
	}
	return d.runs[at]
}

func (d *diary) note(at time.Time, change func(*slotRuns)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change(d.of(at))
}

// TestManySlotsUnderFaults: three hosts run a thousand slots in each policy, or SCHEDULE_SLOTS, while sessions end, replies are
// lost and connections are cut. No slot has two functions at work or two recorded ends, and none is missed: there is
// always a live host. At most once: no slot begins twice. At least once: each slot comes to its end.
func TestManySlotsUnderFaults(t *testing.T) {
	t.Parallel()
	for name, rerun := range map[string]bool{"at most once": false, "at least once": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			virtual(t, func(t *testing.T, srv *zkserver.Server) { manySlots(t, srv, rerun) })
		})
	}
}

func manySlots(t *testing.T, srv *zkserver.Server, rerun bool) {
	t.Helper()
	const hosts = 3
	slots := 1000
	if n, err := strconv.Atoi(os.Getenv("SCHEDULE_SLOTS")); err == nil {
		slots = n
	}
	d := &diary{runs: make(map[time.Time]*slotRuns)}
	opts := []schedule.Option{schedule.WithHistory(100)} // no host falls so far behind
	if rerun {
		opts = append(opts, schedule.WithRerun())
	}
	var all sync.WaitGroup
	var of [hosts]*host
	for i := range of {
		of[i] = newHost(t, srv)
		s := newSchedule(t, of[i].client, "/job", opts...)
		random := rand.New(rand.NewPCG(1, uint64(i)))
		all.Go(func() { d.follow(t, s, random, slots) })
	}
	over := make(chan struct{})
	go func() { all.Wait(); close(over) }()
	random := rand.New(rand.NewPCG(2, 0))
	for done := false; !done; {
		of[random.IntN(hosts)].disturb(srv, random)
		select {
		case <-over:
			done = true
		case <-time.After(within(random, 2*time.Second)):
		}
	}
	srv.Rules().Clear()
	d.judge(t, slots, rerun)
}

// within returns a random time below d.
func within(random *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(random.Int64N(int64(d)))
}

// A host has a client, which can be unplugged from the network.
type host struct {
	client *framework.Client
	until  atomic.Pointer[time.Time] // it is unplugged
}

const timeout = 4 * time.Second

func newHost(t *testing.T, srv *zkserver.Server) *host {
	t.Helper()
	h := new(host)
	h.until.Store(new(time.Time))
	h.client = recipetest.Client(t, srv.Addr(), framework.WithSessionTimeout(timeout),
		framework.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			if time.Now().Before(*h.until.Load()) {
				return nil, errors.New("unplugged")
			}
			return srv.Dial(ctx, network, addr)
		}))
	return h
}

// disturb has one fault meet the host: its connection ends, for longer than its session lives or not, or one
// of its next requests or replies is lost or late.
func (h *host) disturb(srv *zkserver.Server, random *rand.Rand) {
	session := h.client.Session().ID
	switch random.IntN(8) {
	case 0, 1:
		until := time.Now().Add(within(random, 2*timeout))
		h.until.Store(&until)
		srv.Rules().Add(fault.Rule{Session: session, Action: fault.CutBefore})
	case 2:
		srv.Cut()
	default:
		actions := []fault.Action{fault.CutBefore, fault.DropReply, fault.DelayRequest, fault.DelayReply}
		rule := fault.Rule{Session: session, Action: actions[random.IntN(len(actions))], Skip: random.IntN(6)}
		if rule.Action == fault.DelayRequest || rule.Action == fault.DelayReply {
			rule.Delay = within(random, 3*time.Second)
		}
		srv.Rules().Add(rule)
	}
}

// follow runs one slot after another, one in a second, as a host whose clock is up to 300 ms late does.
func (d *diary) follow(t *testing.T, s *schedule.Schedule, random *rand.Rand, slots int) {
	t.Helper()
	began := time.Now()
	for n := range slots {
		<-time.After(time.Until(began.Add(time.Duration(n)*time.Second + within(random, 300*time.Millisecond))))
		at := slot(n)
		got, err := s.Run(t.Context(), at, func(ctx context.Context, l *lease.Lease) error {
			return d.work(ctx, t, l, at, within(random, 20*time.Millisecond))
		})
		d.note(at, func(r *slotRuns) {
			switch {
			case got.Outcome == schedule.Ran && err == nil:
				r.recorded++
			case got.Outcome == schedule.Ran, got.Outcome == schedule.LostInTheMiddle:
				r.lost++
			case got.Outcome == schedule.Missed, err != nil:
				t.Errorf("slot %d: %v, %v", n, got.Outcome, err)
			}
		})
	}
}

func (d *diary) work(ctx context.Context, t *testing.T, l *lease.Lease, at time.Time, takes time.Duration) error {
	t.Helper()
	d.note(at, func(r *slotRuns) {
		r.begun++
		if r.working++; r.working > 1 {
			t.Errorf("slot %v: %d functions at work", at, r.working)
		}
	})
	defer d.note(at, func(r *slotRuns) { r.working-- })
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if l.Err() == nil {
		d.note(at, func(r *slotRuns) { r.returned++ })
	}
	return nil
}

func (d *diary) judge(t *testing.T, slots int, rerun bool) {
	t.Helper()
	var sum slotRuns
	for n := range slots {
		r := d.of(slot(n))
		bad := r.recorded > 1 || r.recorded == 0 && r.lost == 0 || rerun && r.recorded == 0 && r.returned == 0 || !rerun && r.begun > 1
		if bad {
			t.Errorf("slot %d: %+v", n, *r)
		}
		sum.begun, sum.returned, sum.recorded, sum.lost = sum.begun+r.begun, sum.returned+r.returned, sum.recorded+r.recorded, sum.lost+r.lost
	}
	t.Logf("%d slots: %+v", slots, sum)
	if sum.recorded < slots*9/10 || sum.lost == 0 {
		t.Errorf("%+v: the faults have met no run, or too many", sum)
	}
}
