// Package hold keeps what a recipe has been granted: who shares it, whether it is lost, and its
// release. A [Hold] rests on a [Grant], of which each kind of lock has an implementation, and
// is shared by the leases of one owner, a [Share] each.
//
// A hold ends once: it is released with its last share, or it is lost. A loss is passed on before
// the ensemble can grant the same to another client, because the session passes its own end on
// (see [framework.SessionHold]) and everything here is done in that call.
//
// In what order locks are taken: a recipe may hold its own mutex while it calls [Hold.Join]; no mutex
// of this package is held while it calls a recipe, a user's function or the client.
package hold
