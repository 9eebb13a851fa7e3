package hosts_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/docent-go/docent/framework/internal/hosts"
	"github.com/docent-go/docent/internal/must"
)

// round takes n targets, and returns what to dial for each, sorted.
func round(t *testing.T, l *hosts.List, n int) (addrs []string, last string) {
	t.Helper()
	for range n {
		target := must.Get(l.NextTarget(t.Context()))(t)
		addrs, last = append(addrs, target.DialAddr()), target.DialAddr()
	}
	slices.Sort(addrs)
	return addrs, last
}

// A bound narrows the range that a pause is drawn from. It does not cut the pauses to one length.
func TestPause_is_random_up_to_its_bound(t *testing.T) {
	t.Parallel()
	for _, most := range []time.Duration{6250 * time.Microsecond, 250 * time.Millisecond, 0} {
		seen := map[time.Duration]int{}
		for range 200 {
			l := hosts.New([]string{"a:1"}, nil, nil)
			for round := range 8 { // the later ones have the longest range
				p := l.Pause(most)
				must.Get(l.NextTarget(t.Context()))(t)
				if round > 0 && (p.Wait <= 0 || most > 0 && p.Wait > most) {
					t.Fatalf("a pause of %v, bound %v", p.Wait, most)
				}
				if round == 7 {
					seen[p.Wait]++
				}
			}
		}
		for wait, n := range seen {
			if n > 20 {
				t.Errorf("with the bound %v, %d of 200 pauses are %v", most, n, wait)
			}
		}
	}
}

func TestNextTarget(t *testing.T) {
	t.Parallel()
	addresses := map[string][]string{"a": {"10.0.0.1", "10.0.0.2"}, "b": {"10.0.0.3"}}
	resolve := func(_ context.Context, host string) ([]string, error) {
		if addrs := addresses[host]; addrs != nil {
			return addrs, nil
		}
		return nil, errors.New("no such host")
	}
	for name, tt := range map[string]struct {
		resolve hosts.Resolver
		want    []string
	}{
		"hands_out_each_server_once":  {nil, []string{"a:1", "b:1"}},
		"hands_out_each_address_once": {resolve, []string{"10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := hosts.New([]string{"a:1", "b:1"}, nil, tt.resolve)
			for range 20 {
				l.Pause(0)
				got, last := round(t, l, len(tt.want))
				if !slices.Equal(got, tt.want) {
					t.Fatalf("a round of %v, want %v", got, tt.want)
				}
				if first, err := l.NextTarget(t.Context()); err != nil || first.DialAddr() == last {
					t.Fatalf("the next round begins with %v (%v), which was tried last", first, err)
				}
				l.Renew()
			}
		})
	}
	t.Run("reports_a_name_without_address", func(t *testing.T) {
		t.Parallel()
		l := hosts.New([]string{"c:1"}, nil, resolve)
		if target, err := l.NextTarget(t.Context()); err == nil || target.Server != "c:1" {
			t.Errorf("%v, %v, want an error about c:1", target, err)
		}
	})
	t.Run("reports_that_there_is_no_server", func(t *testing.T) {
		t.Parallel()
		if _, err := hosts.New(nil, nil, nil).NextTarget(t.Context()); !errors.Is(err, hosts.ErrNoServers) {
			t.Errorf("%v, want ErrNoServers", err)
		}
	})
}

func TestPause(t *testing.T) {
	t.Parallel()
	l := hosts.New([]string{"a:1"}, []string{"b:1"}, nil)
	if p := l.Pause(0); p.Wait != 0 || !p.Round || p.Again {
		t.Errorf("before the first round: %+v", p)
	}
	round(t, l, 1)
	p := l.Pause(0)
	if p.Wait <= 0 || !p.Round || !p.Again {
		t.Errorf("after a round that failed: %+v, want a wait", p)
	}
	if got, _ := round(t, l, 2); !slices.Equal(got, []string{"a:1", "b:1"}) {
		t.Errorf("the second round has %v, want the fallback, too", got)
	}
	l.Replace([]string{"c:1"}, nil)
	select {
	case <-p.Renewed:
	default:
		t.Error("other servers do not end the pause")
	}
	if l.Has(hosts.Target{Server: "a:1"}) || !l.Has(hosts.Target{Server: "c:1"}) {
		t.Error("the old servers are still among the servers")
	}
}
