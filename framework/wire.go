package framework

import (
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/framework/internal/zkconn"
)

// multiOn returns a result and an error per operation, as the server gave them, and the error of the
// whole. There are no errors of operations if all are nil.
func multiOn(w *zkconn.Conn, ops []TxnOp) ([]TxnResult, []error, error) {
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

func wireACL(acl []acl.Entry) []zkconn.ACL {
	entries := make([]zkconn.ACL, len(acl))
	for i, a := range acl {
		entries[i] = zkconn.ACL{Perms: int32(a.Perms), Scheme: a.Scheme, ID: a.ID}
	}
	return entries
}

func aclOf(entries []zkconn.ACL) []acl.Entry {
	list := make([]acl.Entry, len(entries))
	for i, e := range entries {
		list[i] = acl.Entry{Perms: acl.Permission(e.Perms), Scheme: e.Scheme, ID: e.ID}
	}
	return list
}
