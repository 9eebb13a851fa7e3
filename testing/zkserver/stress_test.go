package zkserver_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/testing/zkserver"
)

// Clients on all front ends create, watch and delete at once, while one front end lags
// and connections are cut. In the end nothing is left.
func TestConcurrentClientsLeaveNothing(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		connect(t, srv).node(t, "/q", 0)
		var taken sync.Map
		var running sync.WaitGroup
		for i := range 12 {
			running.Go(func() {
				if err := cycles(srv, i, &taken); err != nil {
					t.Errorf("client %d: %v", i, err)
				}
			})
		}
		for i := range 30 {
			pass(100 * time.Millisecond)
			f := srv.Frontend(i % 3)
			switch i % 5 {
			case 0:
				f.LagBy(50 * time.Millisecond)
			case 1:
				f.Hold()
			case 2:
				f.Isolate()
			case 3:
				f.Freeze()
			case 4:
				f.Cut()
			}
			pass(100 * time.Millisecond)
			f.CatchUp()
			f.Heal()
			f.Thaw()
		}
		running.Wait()
		pass(2 * T)
		if got := srv.Sessions(); len(got) != 0 {
			t.Errorf("sessions left: %v", got)
		}
		if got := strings.Join(srv.Paths(), " "); got != "/ /q /zookeeper /zookeeper/config /zookeeper/quota" {
			t.Errorf("nodes left: %s", got)
		}
		if got := srv.Watches(); got != 0 {
			t.Errorf("%d watches left", got)
		}
		given := 0
		taken.Range(func(any, any) bool { given++; return true })
		if given < 100 {
			t.Errorf("%d nodes were created, want 100 at least for this to say anything", given)
		}
	}, zkserver.WithFrontends(3))
}

// cycles takes its turn in a queue a few times, with a session for each: some end it,
// some leave it to its timeout.
func cycles(srv *zkserver.Server, who int, taken *sync.Map) error {
	for n := range 40 {
		nc, err := srv.Dial(context.Background(), "", srv.Frontend(n%3).Addr())
		if err != nil {
			return err
		}
		c, err := handshake(nc, T, 0, 0, nil)
		for _, r := range []request{
			plain(create, "/q/n-", []byte("x"), open(), 3), plain(getChildren, "/q", true), plain(exists, "/q/none", true),
			plain(multi, []sub{{setData, body("/q", []byte("y"), -1)}, {check, body("/q", 0)}}),
		} {
			if err == nil {
				err = c.cycle(r, taken)
			}
		}
		if err == nil && n%2 == 0 {
			_, err = c.send(closeSession)
		}
		nc.Close()
		if errors.Is(err, errTwice) {
			return fmt.Errorf("cycle %d: %w", n, err)
		}
		<-time.After(time.Duration(1+who) * 7 * time.Millisecond)
	}
	return nil
}

var errTwice = errors.New("a sequence number was given twice")

// cycle makes one request and waits for its answer. That the connection is cut is
// to be expected.
func (c *client) cycle(r request, taken *sync.Map) error {
	xid, err := c.send(r.op, r.fields(nil)...)
	for err == nil {
		var got reply
		if got, err = c.receive(); err != nil || got.xid != xid {
			continue
		}
		if r.op == create && got.err == 0 {
			if _, twice := taken.LoadOrStore(string(got.body), true); twice {
				return fmt.Errorf("%w: %s", errTwice, got.body)
			}
		}
		return nil
	}
	return err
}
