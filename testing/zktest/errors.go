package zktest

import "errors"

var (
	// ErrMissing is returned by [Start] and [StartEnsemble] when no ZooKeeper or
	// no Java is installed where they look. An environment variable that points
	// to the wrong place is a different error: it was meant to be found.
	ErrMissing = errors.New("zktest: not installed")

	// ErrStopped is returned by a [Server]'s methods that need its process, when
	// it has none.
	ErrStopped = errors.New("zktest: server is not running")

	// ErrClosed is returned by [Server.Restart] and [Ensemble.Repair] after Close.
	ErrClosed = errors.New("zktest: closed")

	// ErrNoNamespaces is returned where network namespaces can't be had, as
	// [Namespaces] tells, and by [Ensemble.CutClients] of an ensemble without.
	ErrNoNamespaces = errors.New("zktest: no network namespaces")

	// ErrNoSession is returned by [KillSession] when the server refuses the
	// session at the first attempt: it had ended before, or the password is wrong.
	ErrNoSession = errors.New("zktest: session refused")

	// errPortTaken is in the error of a server that could not bind a port.
	errPortTaken = errors.New("port taken")
)
