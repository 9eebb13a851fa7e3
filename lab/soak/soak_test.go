package soak_test

import (
	"context"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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
	if text := os.Getenv("SOAK_SECONDS"); text != "" {
		seconds, err := strconv.Atoi(text)
		if err != nil || seconds < 1 {
			t.Fatalf("SOAK_SECONDS=%s: must be a number of seconds, at least 1", text)
		}
		length = time.Duration(seconds) * time.Second
	}
	s := open(t)
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	var operations, faults atomic.Int64
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { work(ctx, s.client, &operations) })
	wg.Go(func() {
		if err := s.disturb(ctx, faultEach, func() { faults.Add(1) }); err != nil {
			t.Errorf("fault: %v", err)
		}
	})
	samples := watch(ctx, &operations, &faults)
	write(t, samples)
	if len(samples) < fewest {
		t.Fatalf("%d samples in %v: too few to judge, want at least %d", len(samples), length, fewest)
	}
	last := samples[len(samples)-1]
	t.Logf("%v: %d operations, %d faults, at the end %d goroutines, %d KiB of heap, %d descriptors",
		length, last.operations, last.faults, last.goroutines, last.heap>>10, last.descriptors)
	for _, finding := range grown(samples) {
		t.Error(finding)
	}
	if least := int64(length / faultEach / 4); last.faults < least || last.operations < 100*least {
		t.Errorf("%d operations and %d faults: too few to show anything", last.operations, last.faults)
	}
}

// watch takes a sample each second until ctx ends.
func watch(ctx context.Context, operations, faults *atomic.Int64) []sample {
	var samples []sample
	begun := time.Now()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			s := take(begun)
			s.operations, s.faults = operations.Load(), faults.Load()
			samples = append(samples, s)
		case <-ctx.Done():
			return samples
		}
	}
}

// open returns a client of an ensemble, with a proxy in front of each server.
func open(t *testing.T) *scene {
	t.Helper()
	e := zktest.RunEnsemble(t, 3)
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
