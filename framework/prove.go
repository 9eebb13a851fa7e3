package framework

import "errors"

// provePath is checked for a version by transactions that are to change nothing.
// Whether there is such a znode makes no difference.
const provePath = "/zookeeper/no-such-znode"

// prove returns nil once a quorum of the ensemble has committed a transaction of the
// session that changes nothing. It needs no permission: the check fails for want of a
// znode, and a transaction that fails is committed, too. A sync would prove less,
// because a leader that has been deposed goes on to answer syncs.
func (w *wire) prove() error {
	_, faults, err := w.multi([]TxnOp{OpCheck(provePath, 0)})
	if len(faults) == 1 && committed(faults[0]) {
		return nil
	}
	return err
}

// touch returns nil once the connected server has answered a read, which proves nothing.
func (w *wire) touch() error {
	_, err := w.exists(provePath)
	if committed(err) {
		return nil
	}
	return err
}

// committed reports whether the ensemble's leader gave that outcome of a check.
func committed(outcome error) bool {
	return outcome == nil || errors.Is(outcome, ErrNoNode) || errors.Is(outcome, ErrBadVersion) || errors.Is(outcome, ErrNoAuth)
}
