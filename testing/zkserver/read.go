package zkserver

import (
	"strings"

	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/internal/zkversion"
)

// answerRead answers everything that the front end answers by itself, from its own
// state of the tree.
func (f *Frontend) answerRead(c *conn, r *request) []byte {
	t := f.view()
	e := proto.NewEncoder()
	e.ReplyHead(r.xid, t.zxid, proto.CodeOK)
	if err := f.read(e, t, c, r); err != proto.CodeOK {
		return errorReply(r.xid, t.zxid, err)
	}
	return e.Frame()
}

func (f *Frontend) read(e *proto.Encoder, t *tree, c *conn, r *request) proto.Code {
	switch r.op {
	case proto.OpPing:
		return proto.CodeOK
	case proto.OpSync: // of a leader's own client
		e.String(r.path)
		return proto.CodeOK
	case proto.OpExists:
		return f.readExists(e, t, c, r)
	case proto.OpGetEphemerals:
		e.Strings(withPrefix(t.ephemeralsOf(c.session.id), r.path))
		return proto.CodeOK
	case proto.OpWhoAmI:
		e.Int32(int32(len(c.ids)))
		for _, id := range c.ids {
			user, _, _ := strings.Cut(id.id, ":")
			e.String(id.scheme)
			e.String(user)
		}
		return proto.CodeOK
	case proto.OpMultiRead:
		f.readMulti(e, t, c, r)
		return proto.CodeOK
	case proto.OpSetWatches, proto.OpSetWatches2:
		f.watches.resume(t, c, &r.resume)
		return proto.CodeOK
	case proto.OpCheckWatches:
		return f.watches.check(r.path, c, r.kind)
	case proto.OpRemoveWatches:
		return f.watches.remove(r.path, c, r.kind)
	case proto.OpAddWatch:
		err := f.watches.addPersistent(r.path, c, r.kind)
		e.Int32(int32(err))
		return err
	}
	return f.readNode(e, t, c, r)
}

// readExists needs no permission on older servers. Its watch is set also on a znode that doesn't exist.
func (f *Frontend) readExists(e *proto.Encoder, t *tree, c *conn, r *request) proto.Code {
	if strings.Contains(r.path, "\x00") {
		return proto.CodeBadArguments
	}
	n := t.nodes[r.path]
	if n != nil && f.server.config.has(zkversion.ExistsNeedsRead) && !permits(n.acl, c.ids, permRead) {
		return proto.CodeNoAuth
	}
	if r.watch {
		f.watches.data.add(r.path, c, watchOnce)
	}
	if n == nil {
		return proto.CodeNoNode
	}
	e.Stat(n.shown())
	return proto.CodeOK
}

// readNode answers a read of one node that must exist and be readable.
func (f *Frontend) readNode(e *proto.Encoder, t *tree, c *conn, r *request) proto.Code {
	n := t.nodes[r.path]
	if n == nil {
		return proto.CodeNoNode
	}
	perm := permRead
	if r.op == proto.OpGetACL {
		perm |= permAdmin
	}
	if !permits(n.acl, c.ids, perm) {
		return proto.CodeNoAuth
	}
	switch r.op {
	case proto.OpGetData:
		e.Bytes(n.data)
		e.Stat(n.shown())
		f.watchIf(r, f.watches.data, c)
	case proto.OpGetChildren:
		e.Strings(n.childNames())
		f.watchIf(r, f.watches.child, c)
	case proto.OpGetChildren2:
		e.Strings(n.childNames())
		e.Stat(n.shown())
		f.watchIf(r, f.watches.child, c)
	case proto.OpCountChildren:
		e.Int32(t.descendants(r.path))
	case proto.OpGetACL:
		list := n.acl
		if !permits(n.acl, c.ids, permAdmin) {
			list = maskSecrets(list)
		}
		putACLs(e, list)
		e.Stat(n.shown())
	}
	return proto.CodeOK
}

func (f *Frontend) watchIf(r *request, table *watchTable, c *conn) {
	if r.watch {
		table.add(r.path, c, watchOnce)
	}
}

// readMulti answers several reads; each fails for itself.
func (f *Frontend) readMulti(e *proto.Encoder, t *tree, c *conn, r *request) {
	for i := range r.ops {
		op := &r.ops[i]
		part := proto.NewEncoder()
		if err := f.readNode(part, t, c, op); err != proto.CodeOK {
			e.OpHead(proto.OpError, false, err)
			e.Int32(int32(err))
			continue
		}
		e.OpHead(op.op, false, proto.CodeOK)
		e.Raw(part.Body())
	}
	e.OpHead(proto.OpError, true, -1)
}

func withPrefix(paths []string, prefix string) []string {
	if trimmed := strings.TrimSpace(prefix); trimmed == "" || trimmed == "/" {
		return paths
	}
	var matching []string
	for _, path := range paths {
		if strings.HasPrefix(path, prefix) {
			matching = append(matching, path)
		}
	}
	return matching
}
