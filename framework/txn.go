package framework

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/framework/internal/requests"
	"github.com/docent-go/docent/framework/internal/session"
	"github.com/docent-go/docent/framework/internal/wire"
	"github.com/docent-go/docent/framework/internal/zkerr"
	"github.com/docent-go/docent/internal/errtype"
	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/internal/usercall"
	"github.com/docent-go/docent/internal/zkpath"
)

type txnKind int

const (
	txnCheck txnKind = iota + 1
	txnCreate
	txnSet
	txnDelete
	txnNever
)

// A TxnOp is one operation of a transaction ([Client.Txn]).
type TxnOp struct {
	kind    txnKind
	path    string
	data    []byte
	version int32
	opts    []CreateOption
	deletes []DeleteOption
	refusal error   // of [OpNever]
	view    *Client // whose path it is; nil for that of the client that runs the transaction

	// set by Txn
	czxid   int64  // of [CreatedBy]; 0 for any
	epoch   *int32 // of [AtEpoch]; nil for any
	flags   int32
	acl     []acl.Entry
	opIndex int // of an epoch's check: the index of the operation that it belongs to
}

// A TxnResult is the result of one operation of a successful transaction.
type TxnResult struct {
	Path string // of a znode that was created
	Stat Stat   // of a znode whose data was set
}

// A TxnError says which operation made a transaction fail. The transaction then had no effect.
type TxnError struct {
	Index int    // of the operation, counted from 0
	Op    string // as in "check", "create", "set", "delete"
	Path  string // as the caller gave it

	// AbsolutePath is the path in the ensemble, as that of an [OpError].
	AbsolutePath string

	Err error
}

// Error returns "operation index (op path): reason".
func (e *TxnError) Error() string {
	path := cmp.Or(e.AbsolutePath, e.Path)
	return fmt.Sprintf("operation %d (%s %s): %v", e.Index, e.Op, errtype.Path(path), e.Err)
}

// Unwrap returns the reason.
func (e *TxnError) Unwrap() error { return e.Err }

// ErrorType returns the type of the reason, as that of package zktel does.
func (e *TxnError) ErrorType() string { return errtype.Of(e.Err) }

// OpCheck makes a transaction fail unless the znode exists and has the version;
// with [AnyVersion] it only has to exist. Of the options it takes [AtEpoch]: the transaction fails with
// [ErrBadVersion], too, unless the znode's epoch has that version. It counts as one operation.
func OpCheck(path string, version int32, opts ...DeleteOption) TxnOp {
	return TxnOp{kind: txnCheck, path: path, version: version, deletes: opts}
}

// OpCreate creates a znode; of the options it takes [Ephemeral], [Sequential]
// and [WithACL].
func OpCreate(path string, data []byte, opts ...CreateOption) TxnOp {
	return TxnOp{kind: txnCreate, path: path, data: data, opts: opts}
}

// OpSet replaces a znode's data, as [Client.Set] does.
func OpSet(path string, data []byte, version int32) TxnOp {
	return TxnOp{kind: txnSet, path: path, data: data, version: version}
}

// OpDelete deletes a znode if its version is the given version; [AnyVersion] matches every version. Of
// the options it takes [CreatedBy]: before each attempt at the transaction the client reads the znode,
// after a sync.
func OpDelete(path string, version int32, opts ...DeleteOption) TxnOp {
	return TxnOp{kind: txnDelete, path: path, version: version, deletes: opts}
}

// OpNever makes a transaction fail with the reason, which must not be nil, before anything is sent.
// A function that has to return an operation returns OpNever if no operation would be right.
func OpNever(reason error) TxnOp { return TxnOp{kind: txnNever, path: "/", refusal: reason} }

// In returns the operation with its path, and that of its result, in the view c, whatever view of the
// ensemble runs the transaction. Guards of leases are such operations, so a transaction of another
// view or client checks the lease's znode and no other. c must be a client of the same ensemble.
//
// If c is bound to a session ([Client.InSession]) of the client that runs the transaction, an operation that
// changes something binds the whole transaction to that session. A transaction that is bound to two sessions
// fails with [ErrSessionEnded], and nothing is sent.
func (op TxnOp) In(c *Client) TxnOp {
	usercall.Require("c", c != nil)
	op.view = c
	return op
}

// inViews returns the operations of a transaction of c, each with the view that its path belongs to.
func (c *Client) inViews(ops []TxnOp) []TxnOp {
	ops = slices.Clone(ops)
	for i := range ops {
		if ops[i].view == nil {
			ops[i].view = c
		}
	}
	return ops
}

// fault returns the error of a transaction that the operation made fail.
func (op TxnOp) fault(index int, reason error) *TxnError {
	err := &TxnError{Index: index, Op: op.name(), Path: op.path, Err: reason}
	if op.view != nil {
		err.AbsolutePath = op.view.shownPath(op.path)
	}
	return err
}

func (op TxnOp) name() string {
	return [...]string{0: "empty TxnOp", txnCheck: "check", txnCreate: "create", txnSet: "set", txnDelete: "delete", txnNever: "never"}[op.kind]
}

// changes reports whether the operation has an effect.
func (op TxnOp) changes() bool { return op.kind != txnCheck }

// Txn does all the operations or none, as one transaction at the ensemble, and returns a result for
// each. If an operation fails, the error wraps a [*TxnError] that names it. A transaction that was
// never sent is tried again by the client's policy until ctx ends. If the reply was lost, the error
// wraps [ErrUnknownOutcome], because a second transaction could fail by the effect of the first. A
// transaction of checks alone has no effect, so it is tried again.
func (c *Client) Txn(ctx context.Context, ops ...TxnOp) ([]TxnResult, error) {
	usercall.Require("ctx", ctx != nil)
	ops = c.inViews(ops)
	full, err := c.prepare(ops)
	if err != nil {
		return nil, c.opError("txn", "", err)
	}
	named := append(slices.Clip(ops), full[len(ops):]...)
	bound, err := c.sessionOf(ops)
	if err != nil {
		return nil, c.callError(ctx, "txn", "", err)
	}
	rq := request{op: "txn", session: bound, batch: len(ops), once: slices.ContainsFunc(ops, TxnOp.changes)}
	results, err := do(ctx, c.core, rq, func(ctx context.Context, s *session.Session) ([]TxnResult, error) {
		if err := confirmCreations(ctx, s, full, named); err != nil {
			return nil, err
		}
		rq := txnRequest(full)
		rq.Answered = c.core.noteMade(full)
		got, err := session.Call(ctx, s, rq)
		return got.outcome(named, err)
	})
	if n, reason := culpritOf(err); n >= len(ops) {
		opIndex := full[n].opIndex
		err = ops[opIndex].fault(opIndex, reason)
	}
	if err != nil {
		return nil, c.callError(ctx, "txn", "", err)
	}
	results = results[:len(ops)]
	if err := checkMade(full, results); err != nil {
		return nil, c.callError(ctx, "txn", "", err)
	}
	for i := range results {
		if ops[i].kind == txnCreate {
			results[i].Path = ops[i].view.viewPath(results[i].Path)
		}
	}
	return results, nil
}

// sessionOf returns the session that a transaction of c is bound to, by c itself or by the views of its changes; 0 for
// none. Checks bind nothing: the guard of a lost lease is to fail by what the server finds.
func (c *Client) sessionOf(ops []TxnOp) (int64, error) {
	bound := c.session
	for _, op := range ops {
		if !op.changes() || op.view.core != c.core || op.view.session == 0 || op.view.session == bound {
			continue
		}
		if bound != 0 {
			return 0, fmt.Errorf("%w: operations of the sessions %#x and %#x", ErrSessionEnded, bound, op.view.session)
		}
		bound = op.view.session
	}
	return bound, nil
}

// noteMade returns what notes the ephemeral znodes that the transaction has made; nil for none.
func (c *core) noteMade(full []TxnOp) func(txnAnswer) {
	isEphemeral := func(op TxnOp) bool { return op.flags&proto.FlagEphemeral != 0 }
	if !slices.ContainsFunc(full, isEphemeral) {
		return nil
	}
	return func(got txnAnswer) {
		for i, r := range got.results {
			if len(got.faults) == 0 && i < len(full) && isEphemeral(full[i]) {
				c.claims.note(r.Path, got.zxid)
			}
		}
	}
}

// checkMade returns an error if a result names a znode that its operation can't have created.
func checkMade(full []TxnOp, results []TxnResult) error {
	for i, r := range results {
		if op := full[i]; op.kind == txnCreate && !isMade(op.path, op.flags&proto.FlagSequential != 0, r.Path) {
			return errOtherPath
		}
	}
	return nil
}

// prepare returns the operations as they are sent, or all faults of them. The checks of epochs come
// last, so that the other operations keep their indexes.
func (c *Client) prepare(ops []TxnOp) ([]TxnOp, error) {
	if len(ops) == 0 {
		return nil, errors.New("operations: must be at least one")
	}
	full := make([]TxnOp, len(ops))
	var faults []error
	size := headSize + multiOpSize
	for i, op := range ops {
		err := ValidatePath(op.path)
		if op.kind == 0 {
			err = errors.New("must come from OpCheck, OpCreate, OpSet or OpDelete")
		}
		switch op.kind {
		case txnCreate:
			err = op.prepareCreate()
		case txnSet:
			op.data = c.core.cfg.pack(op.data)
		case txnCheck, txnDelete:
			err = errors.Join(err, op.prepareZnode())
		case txnNever:
			err = op.refusal
		}
		if err != nil {
			faults = append(faults, op.fault(i, err))
		}
		ops[i].acl = op.acl
		op.path = op.view.pathToCreate(op.path, op.flags&proto.FlagSequential != 0)
		size += op.size()
		full[i] = op
	}
	for i, op := range full {
		if op.epoch != nil {
			check := TxnOp{kind: txnCheck, path: zkpath.Epoch(op.path), version: *op.epoch, opIndex: i}
			size += check.size()
			full = append(full, check)
		}
	}
	return full, errors.Join(append(faults, c.core.checkSize(size))...)
}

func (op *TxnOp) prepareCreate() error {
	cr, err := op.view.newCreation(op.path, op.data, op.opts)
	if cr.stat != nil || cr.given&^(withEphemeral|withSequential|withACL) != 0 {
		return errors.Join(err, errors.New("options: must be among Ephemeral, Sequential and WithACL"))
	}
	if err == nil {
		op.flags, op.acl, op.data = cr.flags(), cr.acls, cr.data
	}
	return err
}

// prepareZnode takes the options that say which znode is meant.
func (op *TxnOp) prepareZnode() error {
	none := deleteConfig{deletion: deletion{version: AnyVersion}}
	cfg := none
	faults := applyAll(op.deletes, func(o DeleteOption) { o.applyDelete(&cfg) })
	others := cfg
	switch op.kind {
	case txnDelete:
		op.czxid, others.czxid = cfg.czxid, 0
	case txnCheck:
		if cfg.atEpoch {
			op.epoch = &cfg.epoch
		}
		others.epoch, others.atEpoch = 0, false
	}
	if others != none {
		faults = errors.Join(faults, errors.New("options: must be CreatedBy for a deletion, AtEpoch for a check"))
	}
	return faults
}

// confirmCreations returns a TxnError unless each znode that is to be deleted is the one of [CreatedBy].
func confirmCreations(ctx context.Context, s *session.Session, full, ops []TxnOp) error {
	for i, op := range full {
		if op.czxid == 0 {
			continue
		}
		err := deletion{path: op.path}.confirm(ctx, s, op.czxid, new(earlierAttempts))
		if err != nil && !Retryable(err) && !unanswered(err) {
			err = ops[i].fault(i, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// size returns how many bytes the operation takes in the request.
func (op *TxnOp) size() int {
	return multiOpSize + createSize - headSize + len(op.path) + len(op.data) + aclSize(op.acl)
}

// multi sends the transaction and waits for the reply.
func multi(ctx context.Context, s *session.Session, full, ops []TxnOp) ([]TxnResult, error) {
	got, err := session.Call(ctx, s, txnRequest(full))
	return got.outcome(ops, err)
}

// txnRequest returns the request of the transaction.
func txnRequest(ops []TxnOp) requests.Request[txnAnswer] {
	e := proto.NewEncoder()
	for _, op := range ops {
		opcode := op.opcode()
		e.OpHead(opcode, false, -1)
		if opcode == proto.OpCreate {
			requests.AppendCreate(e, op.path, op.data, op.flags, op.acl)
			continue
		}
		e.String(op.path)
		if opcode == proto.OpSetData {
			e.Bytes(op.data)
		}
		e.Int32(op.version)
	}
	e.OpHead(proto.OpError, true, -1)
	rq := requests.Request[txnAnswer]{Opcode: proto.OpMulti, Body: e.Body(), Expect: wire.Length{Bytes: proto.OpHeadSize}, Decode: decodeTxn}
	deletes, others := false, false
	for _, op := range ops {
		rq.Expect.Bytes += op.resultSize()
		deletes = deletes || op.kind == txnDelete
		others = others || op.kind == txnCreate || op.kind == txnSet
	}
	if deletes && !others {
		rq.Class = wire.Release
	}
	return rq
}

// resultSize returns how many bytes the result of op has at most, as success or as a fault.
func (op TxnOp) resultSize() int {
	switch op.kind {
	case txnCreate:
		return proto.OpHeadSize + proto.LengthSize + len(op.path) + len("-2147483648")
	case txnSet:
		return proto.OpHeadSize + proto.StatSize
	}
	return proto.OpHeadSize + 4 // a code
}

func (op TxnOp) opcode() proto.Opcode {
	switch op.kind {
	case txnCreate:
		return proto.OpCreate
	case txnSet:
		return proto.OpSetData
	case txnDelete:
		return proto.OpDelete
	}
	return proto.OpCheck
}

// A txnAnswer is the content of the reply to a transaction.
type txnAnswer struct {
	results []TxnResult
	faults  []error // nil if no operation has one
	zxid    int64   // of the transaction
}

func decodeTxn(a wire.Answer) (txnAnswer, error) {
	if err := zkerr.OfCode(a.Code); err != nil {
		return txnAnswer{}, err
	}
	got := txnAnswer{zxid: a.Zxid}
	d := proto.NewDecoder(a.Body)
	for {
		opcode, done, _ := d.OpHead()
		if done || d.Err() != nil {
			break
		}
		var result TxnResult
		switch opcode {
		case proto.OpError:
			got.faults = append(got.faults, make([]error, len(got.results)-len(got.faults))...)
			got.faults = append(got.faults, zkerr.OfCode(proto.Code(d.Int32())))
		case proto.OpCreate:
			result.Path = d.Path()
		case proto.OpSetData:
			result.Stat = statOf(d.Stat())
		case proto.OpCheck, proto.OpDelete:
		default:
			d.Fail()
		}
		got.results = append(got.results, result)
	}
	if d.Err() != nil {
		return txnAnswer{}, requests.ErrMalformed
	}
	return got, nil
}

// outcome returns the meaning of the reply for the operations. A server marks the operations before
// the failed operation as done, although they are undone. It gives another code to the operations
// after it. So the first fault counts.
func (got txnAnswer) outcome(ops []TxnOp, err error) ([]TxnResult, error) {
	if errors.Is(err, ErrUnknownOutcome) || errors.Is(err, ErrNotConnected) || errors.Is(err, ErrClosed) {
		return nil, err
	}
	for i, fault := range got.faults {
		if fault != nil && i < len(ops) {
			culprit := ops[i].fault(i, fault)
			culprit.Err = explained(fault, ops[i].kind, cmp.Or(culprit.AbsolutePath, culprit.Path), ops[i].acl)
			return nil, culprit
		}
	}
	if err == nil && len(got.results) != len(ops) {
		err = fmt.Errorf("%w: %d results for %d operations", ErrUnknownOutcome, len(got.results), len(ops))
	}
	return got.results, err
}
