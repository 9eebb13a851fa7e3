package zkserver

import (
	"cmp"
	"fmt"

	"github.com/docent-go/docent/internal/proto"
)

// A prep checks the operations of one request, in order, against the leader's tree
// and turns each into a change. Nothing is applied until all have been checked, so
// a multi that fails leaves no trace: that is its rollback.
type prep struct {
	tree        *tree
	outstanding map[string]*record // what is proposed has made of nodes; it takes precedence
	session     int64
	ids         []authID // of the client

	pending map[string]*record // what the operations before this one have made of a node
}

// A record is what the checks need to know of a node.
type record struct {
	stat     proto.Stat
	acl      []acl
	children int
	gone     bool
}

// lookup returns the record of path for reading, nil if there is no such node.
func (p *prep) lookup(path string) *record {
	r := cmp.Or(p.pending[path], p.outstanding[path])
	n := p.tree.nodes[path]
	switch {
	case r != nil && r.gone, r == nil && n == nil:
		return nil
	case r != nil:
		return r
	}
	return &record{stat: n.stat, acl: n.acl, children: len(n.children)}
}

func (p *prep) put(path string, r *record) {
	if p.pending == nil {
		p.pending = map[string]*record{}
	}
	p.pending[path] = r
}

// check turns one operation into a change.
func (p *prep) check(r *request) (change, proto.Code) {
	switch {
	case isCreate(r.op):
		return p.create(r)
	case r.op == proto.OpDelete:
		return p.delete(r)
	case r.op == proto.OpDeleteContainer:
		return p.deleteContainer(r)
	case r.op == proto.OpSetData:
		return p.setData(r)
	case r.op == proto.OpSetACL:
		return p.setACL(r)
	case r.op == proto.OpCheck:
		return p.checkVersion(r)
	case r.op == proto.OpReconfig:
		return change{}, proto.CodeReconfigDisabled
	}
	return change{}, proto.CodeUnimplemented
}

// create makes the checks in ZooKeeper's order, which decides what error wins.
func (p *prep) create(r *request) (change, proto.Code) {
	mode, err := p.createMode(r)
	if err != proto.CodeOK {
		return change{}, err
	}
	if !hasParent(r.path) {
		return change{}, proto.CodeBadArguments
	}
	list, ok := expandACL(r.acl, p.ids)
	if !ok {
		return change{}, proto.CodeInvalidACL
	}
	parentPath, _ := parentOf(r.path)
	parent := p.lookup(parentPath)
	if parent == nil {
		return change{}, proto.CodeNoNode
	}
	if !permits(parent.acl, p.ids, permCreate) {
		return change{}, proto.CodeNoAuth
	}
	path := r.path
	if mode.sequential {
		path += fmt.Sprintf("%010d", parent.stat.Cversion)
	}
	if !validPath(path) {
		return change{}, proto.CodeBadArguments
	}
	if p.lookup(path) != nil {
		return change{}, proto.CodeNodeExists
	}
	if kindOf(parent.stat.EphemeralOwner) == ownerSession {
		return change{}, proto.CodeNoChildrenForEphemerals
	}
	c := change{
		kind: Created, path: path, data: r.data, acl: list,
		owner: p.ownerOf(r, mode), parentCversion: parent.stat.Cversion + 1,
	}
	grown := *parent
	grown.stat.Cversion = c.parentCversion
	grown.children++
	p.put(parentPath, &grown)
	p.put(path, &record{stat: proto.Stat{EphemeralOwner: c.owner}, acl: list})
	return c, proto.CodeOK
}

func (p *prep) createMode(r *request) (createMode, proto.Code) {
	mode, known := modeOf(r.flags)
	switch {
	case !known:
		return mode, proto.CodeBadArguments
	case mode.ttl && (r.ttl <= 0 || r.ttl > maxTTL):
		return mode, proto.CodeBadArguments
	case !mode.ttl && (r.ttl >= 0 || r.op == proto.OpCreateTTL):
		return mode, proto.CodeBadArguments
	}
	return mode, proto.CodeOK
}

// ownerOf returns the ephemeralOwner of a new node. The operation decides: the
// container flag in a plain create makes a persistent node.
func (p *prep) ownerOf(r *request, mode createMode) int64 {
	switch {
	case r.op == proto.OpCreateContainer:
		return containerOwner
	case r.op == proto.OpCreateTTL:
		return ttlOwner | r.ttl
	case mode.ephemeral:
		return p.session
	}
	return 0
}

func (p *prep) delete(r *request) (change, proto.Code) {
	if !hasParent(r.path) || isSpecial(r.path) {
		return change{}, proto.CodeBadArguments
	}
	parentPath, _ := parentOf(r.path)
	parent := p.lookup(parentPath)
	if parent == nil {
		return change{}, proto.CodeNoNode
	}
	if !permits(parent.acl, p.ids, permDelete) {
		return change{}, proto.CodeNoAuth
	}
	n := p.lookup(r.path)
	switch {
	case n == nil:
		return change{}, proto.CodeNoNode
	case !matchVersion(n.stat.Version, r.version):
		return change{}, proto.CodeBadVersion
	case n.children > 0:
		return change{}, proto.CodeNotEmpty
	}
	return p.remove(r.path, parentPath, parent), proto.CodeOK
}

// deleteContainer checks the deletion of a container or TTL node by the server.
func (p *prep) deleteContainer(r *request) (change, proto.Code) {
	n := p.lookup(r.path)
	switch {
	case n == nil:
		return change{}, proto.CodeNoNode
	case n.children > 0:
		return change{}, proto.CodeNotEmpty
	}
	parentPath, _ := parentOf(r.path)
	return p.remove(r.path, parentPath, p.lookup(parentPath)), proto.CodeOK
}

func (p *prep) remove(path, parentPath string, parent *record) change {
	shrunk := *parent
	shrunk.children--
	p.put(parentPath, &shrunk)
	p.put(path, &record{gone: true})
	return change{kind: Deleted, path: path}
}

func (p *prep) setData(r *request) (change, proto.Code) {
	n, err := p.target(r, permWrite)
	if err != proto.CodeOK {
		return change{}, err
	}
	if !matchVersion(n.stat.Version, r.version) {
		return change{}, proto.CodeBadVersion
	}
	changed := *n
	changed.stat.Version++
	p.put(r.path, &changed)
	return change{kind: DataSet, path: r.path, data: r.data, version: changed.stat.Version}, proto.CodeOK
}

func (p *prep) setACL(r *request) (change, proto.Code) {
	if !validPath(r.path) {
		return change{}, proto.CodeBadArguments
	}
	list, ok := expandACL(r.acl, p.ids)
	if !ok {
		return change{}, proto.CodeInvalidACL
	}
	n, err := p.target(r, permAdmin)
	if err != proto.CodeOK {
		return change{}, err
	}
	if !matchVersion(n.stat.Aversion, r.version) {
		return change{}, proto.CodeBadVersion
	}
	// The record keeps the old list, by which ZooKeeper 3.8 goes until this is committed.
	changed := *n
	changed.stat.Aversion++
	p.put(r.path, &changed)
	return change{kind: ACLSet, path: r.path, acl: list, version: changed.stat.Aversion}, proto.CodeOK
}

func (p *prep) checkVersion(r *request) (change, proto.Code) {
	n, err := p.target(r, permRead)
	if err != proto.CodeOK {
		return change{}, err
	}
	if !matchVersion(n.stat.Version, r.version) {
		return change{}, proto.CodeBadVersion
	}
	return change{kind: NothingSet, path: r.path}, proto.CodeOK
}

// target returns the record of the node that an operation is about.
func (p *prep) target(r *request, perm int32) (*record, proto.Code) {
	if !validPath(r.path) {
		return nil, proto.CodeBadArguments
	}
	n := p.lookup(r.path)
	if n == nil {
		return nil, proto.CodeNoNode
	}
	if !permits(n.acl, p.ids, perm) {
		return nil, proto.CodeNoAuth
	}
	return n, proto.CodeOK
}

func matchVersion(current, expected int32) bool { return expected == -1 || expected == current }
