package framework

import (
	"github.com/docent-go/docent/framework/internal/zkconn"
)

// A wire is a session's connection by the wire client, with the types of this package.
type wire struct{ *zkconn.Conn }

// A nodeState is the result of a read.
type nodeState struct {
	exists   bool
	stat     Stat
	data     []byte
	children []string
	acl      []ACL
}

func stateOf(n zkconn.Node, err error) (nodeState, error) {
	if err != nil || !n.Exists {
		return nodeState{}, err
	}
	return nodeState{exists: true, stat: statOf(n.Stat), data: n.Data, children: n.Children}, nil
}

func (w *wire) get(path string) (nodeState, error)      { return stateOf(w.Get(path)) }
func (w *wire) exists(path string) (nodeState, error)   { return stateOf(w.Exists(path)) }
func (w *wire) children(path string) (nodeState, error) { return stateOf(w.Children(path)) }

func (w *wire) set(path string, data []byte, version int32) (Stat, error) {
	st, err := w.Set(path, data, version)
	if err != nil {
		return Stat{}, err
	}
	return statOf(st), nil
}

func (w *wire) getACL(path string) ([]ACL, Stat, error) {
	acl, st, err := w.GetACL(path)
	if err != nil {
		return nil, Stat{}, err
	}
	entries := make([]ACL, len(acl))
	for i, a := range acl {
		entries[i] = ACL{Permission(a.Perms), a.Scheme, a.ID}
	}
	return entries, statOf(st), nil
}

func (w *wire) setACL(path string, acl []ACL, version int32) (Stat, error) {
	st, err := w.SetACL(path, wireACL(acl), version)
	if err != nil {
		return Stat{}, err
	}
	return statOf(st), nil
}

// multi returns a result and an error per operation, as the server gave them,
// and the error of the whole. There are no errors of operations if all are nil.
func (w *wire) multi(ops []TxnOp) ([]TxnResult, []error, error) {
	sent := make([]zkconn.Op, len(ops))
	for i, op := range ops {
		sent[i] = wireOp(op)
	}
	answers, err := w.Multi(sent)
	results := make([]TxnResult, len(answers))
	var faults []error
	for i, a := range answers {
		results[i].Path = a.Path
		if a.Stat.Czxid != 0 {
			results[i].Stat = statOf(a.Stat)
		}
		if a.Err != nil && faults == nil {
			faults = make([]error, len(answers))
		}
		if faults != nil {
			faults[i] = a.Err
		}
	}
	return results, faults, err
}

func wireOp(op TxnOp) zkconn.Op {
	switch op.kind {
	case txnCreate:
		return zkconn.CreateOp(op.path, op.data, op.flags, wireACL(op.acl))
	case txnSet:
		return zkconn.SetOp(op.path, op.data, op.version)
	case txnDelete:
		return zkconn.DeleteOp(op.path, op.version)
	default:
		return zkconn.CheckOp(op.path, op.version)
	}
}

func wireACL(acl []ACL) []zkconn.ACL {
	entries := make([]zkconn.ACL, len(acl))
	for i, a := range acl {
		entries[i] = zkconn.ACL{Perms: int32(a.Perms), Scheme: a.Scheme, ID: a.ID}
	}
	return entries
}
