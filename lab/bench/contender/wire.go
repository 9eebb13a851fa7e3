package contender

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// wire is the floor: the requests that a lock can't do without, sent by the wire client itself. No
// code checks them, and its "locks" exclude nothing.
type wire struct{}

func (wire) Version() string { return "go-zookeeper " + goZookeeper{}.Version() }

func (wire) Connect(ctx context.Context, server string, timeout time.Duration) (Session, error) {
	conn, err := Dial(ctx, server, timeout)
	if err != nil {
		return nil, err
	}
	return wireSession{conn, new(sync.Map)}, nil
}

type wireSession struct {
	conn *zk.Conn
	made *sync.Map // directories, by path: one that exists costs the floor nothing
}

func (s wireSession) Close() error { return closeWire(s.conn) }

// Lock knows the kinds
//
//	along       create, with children sent behind it | delete
//	listed      create, children | delete
//	watched     create, exists with a watch on the other one's znode, its event | delete
//	multi       one multi of creates | one multi of deletes
//	semaphore   create, create | the two deletes, at once
//	semaphore-once  create, create | one multi of the two deletes
//	children    refused: children
//
// where creates are of ephemeral sequential znodes without data.
func (s wireSession) Lock(kind, path string) (Lock, error) {
	if err := s.makeParents(kind, path); err != nil {
		return nil, err
	}
	l := &wireLock{conn: s.conn, path: path}
	switch kind {
	case "children":
		return l, nil
	case "along":
		return along{l}, nil
	case "listed":
		return listed{l}, nil
	case "watched":
		return &watched{conn: s.conn, path: path, id: s.conn.SessionID()}, nil
	case "multi":
		return &multi{conn: s.conn, path: path}, nil
	case "semaphore", "semaphore-once":
		l := wireSemaphore{lock: wireLock{conn: s.conn, path: path + "/0"}, lease: wireLock{conn: s.conn, path: path + "/1"}}
		if kind == "semaphore-once" {
			return &wireSemaphoreOnce{l}, nil
		}
		return &l, nil
	default:
		return nil, errKind(kind)
	}
}

// makeParents makes path and, for kinds of several directories, those below.
func (s wireSession) makeParents(kind, path string) error {
	below := map[string]int{"multi": multiSize, "semaphore": 2, "semaphore-once": 2}[kind]
	var dirs []string
	for i := range path[1:] {
		if path[i+1] == '/' {
			dirs = append(dirs, path[:i+1])
		}
	}
	dirs = append(dirs, path)
	for i := range below {
		dirs = append(dirs, fmt.Sprintf("%s/%d", path, i))
	}
	for _, dir := range dirs {
		if _, made := s.made.Load(dir); made {
			continue
		}
		if _, err := s.conn.Create(dir, []byte{}, 0, zk.WorldACL(zk.PermAll)); err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return fmt.Errorf("create %s: %w", dir, err)
		}
		s.made.Store(dir, true)
	}
	return nil
}

// A wireLock is create and delete.
type wireLock struct {
	conn *zk.Conn
	path string
	node string
}

func (l *wireLock) Acquire(context.Context) (err error) {
	l.node, err = l.conn.Create(l.path+"/n-", []byte{}, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
	return err
}

func (l *wireLock) Release(context.Context) error { return l.conn.Delete(l.node, -1) }

// Refused looks who is there, the least that an answer can be had for.
func (l *wireLock) Refused(context.Context) error {
	_, _, err := l.conn.Children(l.path)
	return err
}

// along is create and delete, with the children asked for behind the create, before its answer.
type along struct{ *wireLock }

func (l along) Acquire(ctx context.Context) error {
	listed := make(chan error, 1)
	go func() { listed <- l.Refused(ctx) }() // begins when the create has been sent, mostly
	return errors.Join(l.wireLock.Acquire(ctx), <-listed)
}

// listed is create, children and delete.
type listed struct{ *wireLock }

func (l listed) Acquire(ctx context.Context) error {
	if err := l.wireLock.Acquire(ctx); err != nil {
		return err
	}
	return l.Refused(ctx)
}

// A watched lock is one of two, of different sessions. The one that comes second
// waits for the deletion of the other's znode, and for nothing else.
type watched struct {
	conn *zk.Conn
	path string
	id   int64
}

func (l *watched) Acquire(context.Context) error {
	own := fmt.Sprintf("%s/%x", l.path, l.id)
	names, _, err := l.conn.Children(l.path)
	if err != nil {
		return err
	}
	if _, err := l.conn.Create(own, []byte{}, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
		return err
	}
	for _, name := range names {
		there, _, events, err := l.conn.ExistsW(l.path + "/" + name)
		if err != nil {
			return err
		}
		if !there {
			continue
		}
		if event := <-events; event.Err != nil {
			return event.Err
		}
	}
	return nil
}

func (l *watched) Release(context.Context) error {
	return l.conn.Delete(fmt.Sprintf("%s/%x", l.path, l.id), -1)
}

// A multi is many creates in one transaction, and as many deletes.
type multi struct {
	conn  *zk.Conn
	path  string
	nodes []string
}

func (l *multi) Acquire(context.Context) error {
	var ops []any
	for i := range multiSize {
		ops = append(ops, &zk.CreateRequest{
			Path: fmt.Sprintf("%s/%d/n-", l.path, i), Data: []byte{},
			Flags: zk.FlagEphemeral | zk.FlagSequence, Acl: zk.WorldACL(zk.PermAll),
		})
	}
	created, err := l.conn.Multi(ops...)
	l.nodes = l.nodes[:0]
	for _, c := range created {
		l.nodes = append(l.nodes, c.String)
	}
	return err
}

func (l *multi) Release(context.Context) error {
	var ops []any
	for _, node := range l.nodes {
		ops = append(ops, &zk.DeleteRequest{Path: node, Version: -1})
	}
	if len(ops) != multiSize {
		return fmt.Errorf("created %s, want %d", strings.Join(l.nodes, ", "), multiSize)
	}
	_, err := l.conn.Multi(ops...)
	return err
}

// A wireSemaphore makes a znode of a lock and one of a lease, and removes both at once:
// three round trips on the way.
type wireSemaphore struct{ lock, lease wireLock }

func (l *wireSemaphore) Acquire(ctx context.Context) error {
	if err := l.lock.Acquire(ctx); err != nil {
		return err
	}
	return l.lease.Acquire(ctx)
}

func (l *wireSemaphore) Release(ctx context.Context) error {
	done := make(chan error, 1)
	go func() { done <- l.lock.Release(ctx) }()
	return errors.Join(l.lease.Release(ctx), <-done)
}

// A wireSemaphoreOnce removes both znodes by one request.
type wireSemaphoreOnce struct{ wireSemaphore }

func (l *wireSemaphoreOnce) Release(context.Context) error {
	_, err := l.lock.conn.Multi(&zk.DeleteRequest{Path: l.lease.node, Version: -1}, &zk.DeleteRequest{Path: l.lock.node, Version: -1})
	return err
}
