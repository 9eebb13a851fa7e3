package zkserver

import "fmt"

// A prep checks the operations of one request, in order, against the leader's tree
// and turns each into a change. Nothing is applied until all have been checked, so
// a multi that fails leaves no trace: that is its rollback.
type prep struct {
	tree        *tree
	outstanding map[string]*record // what is proposed has made of nodes; it takes precedence
	session     int64
	ids         []authID // of the client
	ttl         bool     // whether TTL nodes are enabled

	pending map[string]*record // what the operations before this one have made of a node
}

// A record is what the checks need to know of a node.
type record struct {
	stat     stat
	acl      []acl
	children int
	gone     bool
}

// lookup returns the record of path for reading, nil if there is no such node.
func (p *prep) lookup(path string) *record {
	if r := p.pending[path]; r != nil {
		if r.gone {
			return nil
		}
		return r
	}
	if r := p.outstanding[path]; r != nil {
		if r.gone {
			return nil
		}
		return r
	}
	n := p.tree.nodes[path]
	if n == nil {
		return nil
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
func (p *prep) check(r *request) (change, code) {
	switch {
	case r.op.isCreate():
		return p.create(r)
	case r.op == opDelete:
		return p.delete(r)
	case r.op == opDeleteContainer:
		return p.deleteContainer(r)
	case r.op == opSetData:
		return p.setData(r)
	case r.op == opSetACL:
		return p.setACL(r)
	case r.op == opCheck:
		return p.checkVersion(r)
	}
	return change{}, codeUnimplemented
}

// create makes the checks in ZooKeeper's order, which decides what error wins.
func (p *prep) create(r *request) (change, code) {
	mode, err := p.createMode(r)
	if err != codeOK {
		return change{}, err
	}
	if !hasParent(r.path) {
		return change{}, codeBadArguments
	}
	list, ok := expandACL(r.acl, p.ids)
	if !ok {
		return change{}, codeInvalidACL
	}
	parentPath, _ := parentOf(r.path)
	parent := p.lookup(parentPath)
	if parent == nil {
		return change{}, codeNoNode
	}
	if !permits(parent.acl, p.ids, permCreate) {
		return change{}, codeNoAuth
	}
	path := r.path
	if mode.sequential {
		path += fmt.Sprintf("%010d", parent.stat.cversion)
	}
	if !validPath(path) {
		return change{}, codeBadArguments
	}
	if p.lookup(path) != nil {
		return change{}, codeNodeExists
	}
	if kindOf(parent.stat.ephemeralOwner) == ownerSession {
		return change{}, codeNoChildrenForEphemerals
	}
	c := change{
		kind: changeCreate, path: path, data: r.data, acl: list,
		owner: p.ownerOf(r, mode), parentCversion: parent.stat.cversion + 1,
	}
	grown := *parent
	grown.stat.cversion = c.parentCversion
	grown.children++
	p.put(parentPath, &grown)
	p.put(path, &record{stat: stat{ephemeralOwner: c.owner}, acl: list})
	return c, codeOK
}

func (p *prep) createMode(r *request) (createMode, code) {
	mode, known := modeOf(r.flags)
	switch {
	case !known:
		return mode, codeBadArguments
	case mode.ttl && !p.ttl:
		return mode, codeUnimplemented
	case mode.ttl && (r.ttl <= 0 || r.ttl > maxTTL):
		return mode, codeBadArguments
	case !mode.ttl && (r.ttl >= 0 || r.op == opCreateTTL):
		return mode, codeBadArguments
	}
	return mode, codeOK
}

// ownerOf returns the ephemeralOwner of a new node. The operation decides: the
// container flag in a plain create makes a persistent node.
func (p *prep) ownerOf(r *request, mode createMode) int64 {
	switch {
	case r.op == opCreateContainer:
		return containerOwner
	case r.op == opCreateTTL:
		return ttlOwner | r.ttl
	case mode.ephemeral:
		return p.session
	}
	return 0
}

func (p *prep) delete(r *request) (change, code) {
	if !hasParent(r.path) || isSpecial(r.path) {
		return change{}, codeBadArguments
	}
	parentPath, _ := parentOf(r.path)
	parent := p.lookup(parentPath)
	if parent == nil {
		return change{}, codeNoNode
	}
	if !permits(parent.acl, p.ids, permDelete) {
		return change{}, codeNoAuth
	}
	n := p.lookup(r.path)
	switch {
	case n == nil:
		return change{}, codeNoNode
	case !matchVersion(n.stat.version, r.version):
		return change{}, codeBadVersion
	case n.children > 0:
		return change{}, codeNotEmpty
	}
	return p.remove(r.path, parentPath, parent), codeOK
}

// deleteContainer checks the deletion of a container or TTL node by the server.
func (p *prep) deleteContainer(r *request) (change, code) {
	n := p.lookup(r.path)
	switch {
	case n == nil:
		return change{}, codeNoNode
	case n.children > 0:
		return change{}, codeNotEmpty
	}
	parentPath, _ := parentOf(r.path)
	return p.remove(r.path, parentPath, p.lookup(parentPath)), codeOK
}

func (p *prep) remove(path, parentPath string, parent *record) change {
	shrunk := *parent
	shrunk.children--
	p.put(parentPath, &shrunk)
	p.put(path, &record{gone: true})
	return change{kind: changeDelete, path: path}
}

func (p *prep) setData(r *request) (change, code) {
	n, err := p.target(r, permWrite)
	if err != codeOK {
		return change{}, err
	}
	if !matchVersion(n.stat.version, r.version) {
		return change{}, codeBadVersion
	}
	changed := *n
	changed.stat.version++
	p.put(r.path, &changed)
	return change{kind: changeData, path: r.path, data: r.data, version: changed.stat.version}, codeOK
}

func (p *prep) setACL(r *request) (change, code) {
	if !validPath(r.path) {
		return change{}, codeBadArguments
	}
	list, ok := expandACL(r.acl, p.ids)
	if !ok {
		return change{}, codeInvalidACL
	}
	n, err := p.target(r, permAdmin)
	if err != codeOK {
		return change{}, err
	}
	if !matchVersion(n.stat.aversion, r.version) {
		return change{}, codeBadVersion
	}
	// The record keeps the old list, by which ZooKeeper 3.8 goes until this is committed.
	changed := *n
	changed.stat.aversion++
	p.put(r.path, &changed)
	return change{kind: changeACL, path: r.path, acl: list, version: changed.stat.aversion}, codeOK
}

func (p *prep) checkVersion(r *request) (change, code) {
	n, err := p.target(r, permRead)
	if err != codeOK {
		return change{}, err
	}
	if !matchVersion(n.stat.version, r.version) {
		return change{}, codeBadVersion
	}
	return change{kind: changeNothing, path: r.path}, codeOK
}

// target returns the record of the node that an operation is about.
func (p *prep) target(r *request, perm int32) (*record, code) {
	if !validPath(r.path) {
		return nil, codeBadArguments
	}
	n := p.lookup(r.path)
	if n == nil {
		return nil, codeNoNode
	}
	if !permits(n.acl, p.ids, perm) {
		return nil, codeNoAuth
	}
	return n, codeOK
}

func matchVersion(current, expected int32) bool { return expected == -1 || expected == current }
