package contender

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/go-zookeeper/zk"
)

// goZookeeper is the Lock that comes with the wire client.
type goZookeeper struct{}

const wireModule = "github.com/go-zookeeper/zk"

func (goZookeeper) Version() string {
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, m := range build.Deps {
			if m.Path == wireModule {
				return m.Version
			}
		}
	}
	return "unknown"
}

func (goZookeeper) Connect(ctx context.Context, server string, timeout time.Duration) (Session, error) {
	conn, err := Dial(ctx, server, timeout)
	if err != nil {
		return nil, err
	}
	return goZookeeperSession{conn}, nil
}

type goZookeeperSession struct{ conn *zk.Conn }

func (s goZookeeperSession) Close() error { return closeWire(s.conn) }

// Get leaves the call when ctx ends: the wire client has no contexts.
func (s goZookeeperSession) Get(ctx context.Context, path string) error {
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

// Lock knows the kinds mutex and multi: as many mutexes, one after another.
func (s goZookeeperSession) Lock(kind, path string) (Lock, error) {
	acl := zk.WorldACL(zk.PermAll)
	switch kind {
	case "mutex":
		return goZookeeperLock{zk.NewLock(s.conn, path, acl)}, nil
	case "multi":
		var locks goZookeeperLock
		for i := range multiSize {
			locks = append(locks, zk.NewLock(s.conn, fmt.Sprintf("%s/%d", path, i), acl))
		}
		return locks, nil
	default:
		return nil, errKind(kind)
	}
}

// goZookeeperLock is one lock, or those of a multi-lock, which the library lacks.
type goZookeeperLock []*zk.Lock

func (l goZookeeperLock) Acquire(context.Context) error {
	for _, member := range l {
		if err := member.Lock(); err != nil {
			return err
		}
	}
	return nil
}

func (l goZookeeperLock) Release(context.Context) error {
	for _, member := range l {
		if err := member.Unlock(); err != nil {
			return err
		}
	}
	return nil
}

// Dial returns a connection of the wire client, once it has a session.
func Dial(ctx context.Context, server string, timeout time.Duration) (*zk.Conn, error) {
	conn, events, err := zk.Connect([]string{server}, timeout, zk.WithLogger(silent{}))
	if err != nil {
		return nil, err
	}
	for {
		select {
		case event := <-events:
			if event.State == zk.StateHasSession {
				return conn, nil
			}
		case <-ctx.Done():
			conn.Close()
			return nil, fmt.Errorf("connecting to %s: %w", server, ctx.Err())
		}
	}
}

func closeWire(conn *zk.Conn) error {
	conn.Close()
	return nil
}

type silent struct{}

func (silent) Printf(string, ...any) {}
