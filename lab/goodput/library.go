package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/docent-go/docent/lab/bench/contender"
)

// A library is a contender in Go, whose sessions read.
type library struct{ contender.Library }

func (lib library) run(ctx context.Context, addr string, l load, locked, done func() error) (r result, err error) {
	connected, err := lib.Connect(ctx, addr, sessionTimeout)
	if err != nil {
		return r, err
	}
	s := connected.(contender.Reader)
	defer s.Close()
	m, err := s.Lock("mutex", lockPath)
	if err != nil {
		return r, err
	}
	if err := m.Acquire(ctx); err != nil {
		return r, err
	}
	if err := locked(); err != nil {
		return r, err
	}
	if l.reads > 0 {
		r = bulk(ctx, s, l)
	} else {
		r = overload(ctx, s, l)
	}
	return r, done()
}

func bulk(ctx context.Context, s contender.Reader, l load) (r result) {
	start := time.Now()
	var ok atomic.Int64
	var wg sync.WaitGroup
	for range l.reads {
		wg.Go(func() {
			if s.Get(ctx, largePath) == nil {
				ok.Add(1)
			}
		})
	}
	wg.Wait()
	return result{OK: int(ok.Load()), Took: time.Since(start)}
}

func overload(ctx context.Context, s contender.Reader, l load) (r result) {
	start := time.Now()
	var ok atomic.Int64
	var wg sync.WaitGroup
	read := func() bool {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		return s.Get(ctx, smallPath) == nil
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for time.Since(start) < l.lasts {
		for range l.perTick {
			wg.Go(func() {
				if read() {
					ok.Add(1)
				}
			})
		}
		<-tick.C
	}
	wg.Wait()
	r = result{OK: int(ok.Load()), Took: time.Since(start)}
	end := time.Now()
	for !read() && time.Since(end) < 2*time.Minute {
		<-tick.C
	}
	r.After = time.Since(end)
	return r
}
