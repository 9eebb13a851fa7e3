package zkconn

import (
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/framework/internal/zkerr"
	"github.com/docent-go/docent/internal/proto"
)

// An Op is an operation of a transaction, from CreateOp, SetOp, DeleteOp or CheckOp.
type Op = any

// CreateOp creates a znode.
func CreateOp(path string, data []byte, flags int32, acl []ACL) Op {
	return &zk.CreateRequest{Path: path, Data: data, Acl: acl, Flags: flags}
}

// SetOp replaces a znode's data.
func SetOp(path string, data []byte, version int32) Op {
	return &zk.SetDataRequest{Path: path, Data: data, Version: version}
}

// DeleteOp deletes a znode.
func DeleteOp(path string, version int32) Op {
	return &zk.DeleteRequest{Path: path, Version: version}
}

// CheckOp checks a znode's version.
func CheckOp(path string, version int32) Op {
	return &zk.CheckVersionRequest{Path: path, Version: version}
}

// A Result is the result of an operation of a transaction, as the server returned it.
type Result struct {
	Path string
	Stat proto.Stat // zero if the operation has none
	Err  error
}

// Multi does a transaction, and returns a result for each operation and the error of the
// transaction.
func (w *Conn) Multi(ops []Op) ([]Result, error) {
	responses, err := w.conn.Multi(ops...)
	results := make([]Result, len(responses))
	for i, r := range responses {
		results[i] = Result{Path: r.String, Err: translated(r.Error)}
		if r.Stat != nil {
			results[i].Stat = proto.Stat(*r.Stat)
		}
	}
	return results, translated(err)
}

// ProvePath is the path of the version check in transactions that are to change nothing. The proof
// does not depend on whether the znode exists.
const ProvePath = "/zookeeper/no-such-znode"

// Prove returns nil once a quorum of the ensemble has committed a transaction of the session that
// changes nothing. It needs no permission: the check fails because there is no znode, and a failed
// transaction is committed, too. A sync would prove less, because a deposed leader still replies to
// syncs.
func (w *Conn) Prove() error {
	results, err := w.Multi([]Op{CheckOp(ProvePath, 0)})
	if len(results) == 1 && committed(results[0].Err) {
		return nil
	}
	return err
}

// Touch returns nil once the connected server has answered a read, which proves nothing.
func (w *Conn) Touch() error {
	_, err := w.Exists(ProvePath)
	if committed(err) {
		return nil
	}
	return err
}

// committed reports whether the ensemble's leader gave that outcome of a check.
func committed(outcome error) bool {
	return outcome == nil || errors.Is(outcome, zkerr.ErrNoNode) || errors.Is(outcome, zkerr.ErrBadVersion) ||
		errors.Is(outcome, zkerr.ErrNoAuth)
}
