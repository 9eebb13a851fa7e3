package main

import (
	"context"
	"time"

	"github.com/docent-go/docent/lab/bench/contender"
)

// delay sets whether the round trip is made longer: warming up does without.
func (st *site) delay(on bool) {
	for _, p := range st.proxies {
		p.ResetRequests()
		if on {
			p.SetLatency(st.setting.rtt)
		} else {
			p.SetLatency(0)
		}
	}
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
