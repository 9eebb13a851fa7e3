package zkserver

import "strings"

// answerRead answers everything that the front end answers by itself, from its own
// state of the tree.
func (f *Frontend) answerRead(c *conn, r *request) []byte {
	t := f.view()
	e := newEncoder()
	e.replyHeader(r.xid, t.zxid, codeOK)
	if err := f.read(e, t, c, r); err != codeOK {
		return errorReply(r.xid, t.zxid, err)
	}
	return e.frame()
}

func (f *Frontend) read(e *encoder, t *tree, c *conn, r *request) code {
	switch r.op {
	case opPing:
		return codeOK
	case opSync: // of a leader's own client
		e.string(r.path)
		return codeOK
	case opExists:
		return f.readExists(e, t, c, r)
	case opGetEphemerals:
		e.strings(withPrefix(t.ephemeralsOf(c.session.id), r.path))
		return codeOK
	case opWhoAmI:
		e.int32(int32(len(c.ids)))
		for _, id := range c.ids {
			user, _, _ := strings.Cut(id.id, ":")
			e.string(id.scheme)
			e.string(user)
		}
		return codeOK
	case opMultiRead:
		f.readMulti(e, t, c, r)
		return codeOK
	case opSetWatches, opSetWatches2:
		f.watches.resume(t, c, &r.resume)
		return codeOK
	case opCheckWatches:
		return f.watches.check(r.path, r.kind)
	case opRemoveWatches:
		return f.watches.remove(r.path, c, r.kind)
	case opAddWatch:
		err := f.watches.addPersistent(r.path, c, r.kind)
		e.int32(int32(err))
		return err
	}
	return f.readNode(e, t, c, r)
}

// readExists needs no permission, and its watch stands also on a node that is not
// there.
func (f *Frontend) readExists(e *encoder, t *tree, c *conn, r *request) code {
	if strings.Contains(r.path, "\x00") {
		return codeBadArguments
	}
	if r.watch {
		f.watches.data.add(r.path, c, watchOnce)
	}
	n := t.nodes[r.path]
	if n == nil {
		return codeNoNode
	}
	e.stat(n.shown())
	return codeOK
}

// readNode answers a read of one node that must exist and be readable.
func (f *Frontend) readNode(e *encoder, t *tree, c *conn, r *request) code {
	n := t.nodes[r.path]
	if n == nil {
		return codeNoNode
	}
	perm := permRead
	if r.op == opGetACL {
		perm |= permAdmin
	}
	if !permits(n.acl, c.ids, perm) {
		return codeNoAuth
	}
	switch r.op {
	case opGetData:
		e.bytes(n.data)
		e.stat(n.shown())
		f.watchIf(r, f.watches.data, c)
	case opGetChildren:
		e.strings(n.childNames())
		f.watchIf(r, f.watches.child, c)
	case opGetChildren2:
		e.strings(n.childNames())
		e.stat(n.shown())
		f.watchIf(r, f.watches.child, c)
	case opCountChildren:
		e.int32(t.descendants(r.path))
	case opGetACL:
		list := n.acl
		if !permits(n.acl, c.ids, permAdmin) {
			list = maskSecrets(list)
		}
		e.acls(list)
		e.stat(n.shown())
	}
	return codeOK
}

func (f *Frontend) watchIf(r *request, table *watchTable, c *conn) {
	if r.watch {
		table.add(r.path, c, watchOnce)
	}
}

// readMulti answers several reads; each fails for itself.
func (f *Frontend) readMulti(e *encoder, t *tree, c *conn, r *request) {
	for i := range r.ops {
		op := &r.ops[i]
		part := &encoder{}
		if err := f.readNode(part, t, c, op); err != codeOK {
			e.multiHeader(opError, false, err)
			e.int32(int32(err))
			continue
		}
		e.multiHeader(op.op, false, codeOK)
		e.buf = append(e.buf, part.buf...)
	}
	e.multiHeader(opError, true, -1)
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
