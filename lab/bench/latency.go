package main

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/docent-go/docent/lab/bench/contender"
)

// delay sets whether the round trip is made longer: warming up does without.
func (st *site) delay(on bool) {
	st.delayed.Store(on)
	for _, p := range st.proxies {
		p.ResetRequests()
		if on {
			p.SetLatency(st.setting.rtt)
		} else {
			p.SetLatency(0)
		}
	}
}

// jitterPause is how long a latency lasts, where it varies.
const jitterPause = 5 * time.Millisecond

// vary changes the latency again and again. It returns when ctx ends.
func (st *site) vary(ctx context.Context) {
	for wait(ctx, jitterPause) == nil {
		for _, p := range st.proxies {
			if st.delayed.Load() {
				p.SetLatency(st.setting.rtt + rand.N(st.setting.jitter))
			}
		}
	}
}

// startJitter varies the latency until the site is closed.
func (st *site) startJitter() {
	ctx, stop := context.WithCancel(context.Background())
	var varied sync.WaitGroup
	varied.Go(func() { st.vary(ctx) })
	st.closers = append(st.closers, func() error {
		stop()
		varied.Wait()
		return nil
	})
}

// roundTrip returns the median time of a small read, as contenders see it.
func (st *site) roundTrip(ctx context.Context) (time.Duration, error) {
	conn, err := contender.Dial(ctx, st.addrs[0], sessionTimeout)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	var samples []float64
	for range 50 {
		begun := time.Now()
		if _, _, err := conn.Exists("/"); err != nil {
			return 0, err
		}
		samples = append(samples, float64(time.Since(begun)))
	}
	return time.Duration(quantile(samples, 0.5)), nil
}

// settle is how long a waiter's requests may take to come to rest.
func (st *site) settle() time.Duration { return 5*time.Millisecond + 4*st.setting.rtt }
