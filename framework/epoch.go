package framework

import (
	"context"
	"errors"
	"fmt"

	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/framework/internal/requests"
	"github.com/docent-go/docent/framework/internal/session"
	"github.com/docent-go/docent/internal/zkpath"
)

// WithEpoch makes the transaction that creates the znode also set its epoch, and stores the epoch's
// version in version. The epoch is a persistent znode next to the path, <path>.docent-epoch. Each
// znode that is created like this at the path has another version. [AtEpoch] identifies the znode by it, for
// [Client.Delete] and [OpCheck].
//
// If there is no epoch, Create creates it with the ACL of the znode. The client never deletes it,
// because a new epoch would repeat the versions of earlier znodes. Every client that creates the
// znode needs permission to read and to write the epoch. Create refuses to create an epoch with an
// ACL that permits no client to do so. WithEpoch requires [KnownBySession], and excludes [ListTo].
func WithEpoch(version *int32) CreateOption {
	return createOption(func(cfg *createConfig) {
		cfg.epoch = version
		if version != nil {
			cfg.given |= withEpoch
		}
	})
}

// AtEpoch makes Delete delete the znode only if its epoch has the version that [WithEpoch] stored,
// in one transaction. So a znode that another client has created at the path since is never
// deleted. AtEpoch requires [CreatedBy], by which Delete finds its znode if an operator wrote to
// the epoch or deleted it. It excludes [AtVersion]. If an operator deleted the epoch, Delete is as
// with CreatedBy and without AtEpoch.
func AtEpoch(version int32) DeleteOption {
	return deleteOption(func(cfg *deleteConfig) { cfg.epoch, cfg.atEpoch = version, true })
}

var (
	errEpochMoved = fmt.Errorf("%w of the epoch", ErrBadVersion)
	errNoEpoch    = fmt.Errorf("%w: the epoch", ErrNoNode)
)

// An epoch is what the client knows of the epoch of a path.
type epoch struct {
	path    string // of the epoch itself
	exists  bool
	version int32
	mzxid   int64 // of the transaction that set it last
}

func (e *epoch) store(st Stat) { e.exists, e.version, e.mzxid = true, st.Version, st.Mzxid }

// read reads the epoch. If its caller then finds its znode at the path, it may delete that znode at
// the epoch. If another znode is there by then, the epoch has another version.
func (e *epoch) read(ctx context.Context, s *session.Session) error {
	found, err := session.Call(ctx, s, requests.Exists(e.path))
	switch {
	case errors.Is(err, ErrNoNode) || err == nil && !found.Exists:
		e.exists = false
		return nil
	case err == nil:
		e.store(statOf(found.Stat))
	}
	return err
}

// delete deletes the znode at path. It returns errEpochMoved if the epoch has changed. If there was
// no epoch, nothing identifies the znode.
func (e *epoch) delete(ctx context.Context, s *session.Session, path string) error {
	ops := []TxnOp{OpCheck(e.path, e.version), OpDelete(path, AnyVersion)}
	if !e.exists {
		return session.Effect(ctx, s, requests.Delete(path, AnyVersion))
	}
	_, err := multi(ctx, s, ops, ops)
	moved := errors.Is(err, ErrBadVersion) || errors.Is(err, ErrNoNode)
	if n, reason := culpritOf(err); n == 0 && moved {
		return errEpochMoved
	} else if n == 1 {
		return reason
	}
	return err
}

// culpritOf returns the index of the operation that made a transaction fail with err, and the
// reason. The index is -1 if it was none of them.
func culpritOf(err error) (int, error) {
	if culprit := new(TxnError); errors.As(err, &culprit) {
		return culprit.Index, culprit.Err
	}
	return -1, err
}

// deleteAtEpoch makes one attempt at a deletion at an epoch.
func (x deletion) deleteAtEpoch(ctx context.Context, s *session.Session, d *earlierAttempts) error {
	e := epoch{path: zkpath.Epoch(x.path), exists: true, version: x.epoch}
	if d.unknown || d.confirms { // a client that does not set the epoch may have created another znode
		if err := x.confirm(ctx, s, x.czxid, d); err != nil {
			return err
		}
	}
	err := e.delete(ctx, s, x.path)
	if !errors.Is(err, errEpochMoved) {
		return err
	}
	if err := e.read(ctx, s); err != nil {
		return err
	}
	if err := x.confirm(ctx, s, x.czxid, d); err != nil {
		return err
	}
	if err = e.delete(ctx, s, x.path); errors.Is(err, errEpochMoved) {
		return errRestart
	}
	return err
}

// epochOps returns the transaction that creates the znode and sets its epoch.
func (cr *creation) epochOps() []TxnOp {
	return []TxnOp{
		{kind: txnSet, path: zkpath.Epoch(cr.path), data: []byte{}, version: AnyVersion},
		{kind: txnCreate, path: cr.path, data: cr.data, flags: cr.flags(), acl: cr.acls},
	}
}

// sendWithEpoch sends the transaction of epochOps and waits for the reply. It returns errNoEpoch if
// there is no epoch.
func (cr *creation) sendWithEpoch(ctx context.Context, s *session.Session) (*znode, <-chan struct{}, error) {
	ops := cr.epochOps()
	p := session.Begin(s, txnRequest(ops))
	answer, err := p.Wait(ctx)
	results, err := answer.outcome(ops, err)
	switch n, reason := culpritOf(err); {
	case n == 0 && errors.Is(err, ErrNoNode):
		err = errNoEpoch
	case n == 0:
		err = fmt.Errorf("its epoch: %w", reason)
	default:
		err = reason
	}
	if err != nil {
		return nil, p.Done(), err
	}
	set := results[0].Stat
	*cr.epoch = set.Version
	cr.made = znode{cr.path, Stat{
		Czxid: set.Mzxid, Mzxid: set.Mzxid, Pzxid: set.Mzxid, Ctime: set.Mtime, Mtime: set.Mtime,
		EphemeralOwner: s.ID(), DataLength: int32(len(cr.data)),
	}}
	return &cr.made, p.Done(), nil
}

// makeEpoch creates the epoch, and the parent with WithParents. An epoch that exists is no fault.
func (cr *creation) makeEpoch(ctx context.Context, s *session.Session) error {
	path := zkpath.Epoch(cr.path)
	acl := cr.aclOf(path)
	if err := errors.Join(validateACL("ACL of "+path, acl), validateEpochACL(path, acl)); err != nil {
		return err
	}
	_, err := session.Call(ctx, s, requests.Create(path, []byte{}, 0, acl, 0))
	switch {
	case errors.Is(err, ErrNodeExists):
		return nil
	case cr.has(withParents) && errors.Is(err, ErrNoNode):
		return cr.makeParent(ctx, s)
	}
	return explained(err, txnCreate, path, acl)
}

// validateEpochACL refuses an ACL with which no client could set and check the epoch.
func validateEpochACL(path string, list []acl.Entry) error {
	var perms acl.Permission
	for _, entry := range list {
		perms |= entry.Perms
	}
	if needed := acl.Read | acl.Write; perms&needed != needed {
		return fmt.Errorf("ACL of %s: must permit to read and to write, because each holder sets the epoch", path)
	}
	return nil
}

// checkEpoch returns the znode that an earlier attempt has left, and stores the version of its epoch. If an
// operator has written or deleted the epoch since, it deletes the znode, because its epoch is unknown. The
// next holder's epoch would be unknown, too.
func (cr *creation) checkEpoch(ctx context.Context, s *session.Session, made *znode) (*znode, error) {
	e := cr.protection.epoch
	if e.exists && e.mzxid == made.stat.Czxid {
		*cr.epoch = e.version
		return made, nil
	}
	return nil, restartUnless(unlessGone(e.delete(ctx, s, made.path)))
}
