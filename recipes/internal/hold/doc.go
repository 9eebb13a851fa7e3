// Package hold keeps a recipe's grant: the leases that share it, its loss and its release. A [Hold]
// rests on a [Grant], which each kind of lock implements. The leases of one owner share it, each by
// a [Share].
//
// A hold ends once, by the release of its last share or by a loss. A loss is reported before the
// ensemble can grant the lock to another client. The session reports its own end in time (see
// [framework.SessionHold]), and the hold does everything in that call.
//
// Lock order: a recipe may hold its own mutex while it calls [Hold.Join]. No mutex of this package
// is held while it calls a recipe, a user's function or the client.
package hold
