package framework

import (
	"context"

	"github.com/docent-go/docent/framework/internal/session"
	"github.com/docent-go/docent/framework/internal/watchreg"
	"github.com/docent-go/docent/framework/internal/zkconn"
	"github.com/docent-go/docent/internal/proto"
)

// A beginning is a Watch whose read is under way.
type beginning struct {
	watch *Watch
	begun *watchreg.Beginning
}

// A readRequest reads the state that a watch watches.
type readRequest func(*zkconn.Conn) (proto.Node, error)

// beginWatch begins a Watch by the read, as [watchreg.Registry.Begin] does.
func (c *core) beginWatch(s *session.Session, key watchreg.Key, read readRequest, shared bool) beginning {
	w := &Watch{cfg: &c.cfg}
	send := func() watchreg.Read {
		return session.Begin(s, func(conn *zkconn.Conn) (*proto.Node, error) {
			found, err := read(conn)
			return &found, err
		})
	}
	return beginning{watch: w, begun: s.Watches().Begin(&w.sub, key, send, shared)}
}

// wait returns the Watch once its read has been answered.
func (b beginning) wait(ctx context.Context) (*Watch, error) {
	if err := b.begun.Wait(ctx); err != nil {
		return nil, err
	}
	return b.watch, nil
}

// readOf returns the read that sets the watch of the key.
func readOf(key watchreg.Key) readRequest {
	return func(conn *zkconn.Conn) (proto.Node, error) {
		switch key.Kind {
		case watchreg.Exists:
			return conn.Exists(key.Path)
		case watchreg.Children:
			return conn.Children(key.Path)
		default:
			return conn.Get(key.Path)
		}
	}
}
