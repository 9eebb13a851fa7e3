package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
)

// A session is a Go library's connection to a server.
type session interface {
	lock(ctx context.Context, path string) error
	get(ctx context.Context, path string) error // returns when ctx ends
	close()
}

// A library is a contender in Go.
type library struct {
	open func(addr string) (session, error)
}

func (lib library) run(ctx context.Context, addr string, l load, locked, done func() error) (r result, err error) {
	s, err := lib.open(addr)
	if err != nil {
		return r, err
	}
	defer s.close()
	if err := s.lock(ctx, lockPath); err != nil {
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

func bulk(ctx context.Context, s session, l load) (r result) {
	start := time.Now()
	var ok atomic.Int64
	var wg sync.WaitGroup
	for range l.reads {
		wg.Go(func() {
			if s.get(ctx, largePath) == nil {
				ok.Add(1)
			}
		})
	}
	wg.Wait()
	return result{OK: int(ok.Load()), Took: time.Since(start)}
}

func overload(ctx context.Context, s session, l load) (r result) {
	start := time.Now()
	var ok atomic.Int64
	var wg sync.WaitGroup
	read := func() bool {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		return s.get(ctx, smallPath) == nil
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

type docentSession struct{ client *framework.Client }

func openDocent(addr string) (session, error) {
	c, err := framework.NewClient(addr, framework.WithSessionTimeout(sessionTimeout))
	return docentSession{c}, err
}

func (s docentSession) lock(ctx context.Context, path string) error {
	m, err := lock.NewMutex(s.client, path)
	if err == nil {
		_, err = m.Lock(ctx)
	}
	return err
}

func (s docentSession) get(ctx context.Context, path string) error {
	_, _, err := s.client.Get(ctx, path)
	return err
}

func (s docentSession) close() { _ = s.client.Close() }

// A goZookeeperSession leaves a call where its context ends: the wire client has none.
type goZookeeperSession struct{ conn *zk.Conn }

func openGoZookeeper(addr string) (session, error) {
	conn, _, err := zk.Connect([]string{addr}, sessionTimeout, zk.WithLogInfo(false))
	return goZookeeperSession{conn}, err
}

func (s goZookeeperSession) lock(_ context.Context, path string) error {
	return zk.NewLock(s.conn, path, zk.WorldACL(zk.PermAll)).Lock()
}

func (s goZookeeperSession) get(ctx context.Context, path string) error {
	done := make(chan error, 1)
	go func() {
		_, _, err := s.conn.Get(path)
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s goZookeeperSession) close() { s.conn.Close() }
