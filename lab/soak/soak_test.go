package soak_test

import (
	"context"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zktest"
)

const (
	sessionTimeout = 2 * time.Second
	defaultLength  = 20 * time.Second
	faultEach      = 1500 * time.Millisecond
)

func TestSoak(t *testing.T) {
	length := defaultLength
	if text := os.Getenv("SOAK"); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil || length < fewest*time.Second {
			t.Fatalf("SOAK=%s: must be a duration such as 10m or 72h, at least %ds", text, fewest)
		}
	}
	interrupted, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s := open(t)
	ctx, cancel := context.WithTimeout(interrupted, length)
	defer cancel()
	var operations, faults atomic.Int64
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { work(ctx, s.client, &operations) })
	wg.Go(func() {
		if err := s.disturb(ctx, faultEach, func() { faults.Add(1) }); err != nil {
			t.Errorf("fault: %v", err)
			cancel() // what follows would show nothing
		}
	})
	r := newReport(t, length)
	r.watch(ctx, &operations, &faults)
	r.close(interrupted.Err() != nil)
	if r.count < fewest {
		t.Fatalf("%d samples: too few to judge, want at least %d", r.count, fewest)
	}
	t.Log(r.text())
	for _, finding := range grown(r.series.kept) {
		t.Error(finding)
	}
	if least := int64(r.last.at / faultEach / 4); r.last.faults < least || r.last.operations < 100*least {
		t.Errorf("%d operations and %d faults: too few to show anything", r.last.operations, r.last.faults)
	}
}

// open returns a client of an ensemble, with a proxy in front of each server.
func open(t *testing.T) *scene {
	t.Helper()
	// Days of transactions and of lines about cut connections would fill the disk.
	e := zktest.RunEnsemble(t, 3, zktest.WithLogLevel("ERROR"),
		zktest.WithSetting("autopurge.purgeInterval", "1"), zktest.WithSetting("autopurge.snapRetainCount", "3"))
	s := &scene{servers: e.Servers}
	var addrs []string
	for _, server := range e.Servers {
		p := zkproxy.Run(t, server.Addr())
		s.proxies = append(s.proxies, p)
		addrs = append(addrs, p.Addr())
	}
	c := must.Get(framework.NewClient(strings.Join(addrs, ","),
		framework.WithSessionTimeout(sessionTimeout), framework.WithAuth("digest", []byte("soak:first"))))(t)
	t.Cleanup(func() {
		zktest.Eventually(t, 30*time.Second, "the end of all background deletions", func() bool { return c.PendingDeletes() == 0 })
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	must.OK(t, c.AwaitConnected(t.Context()))
	s.client = c
	return s
}
