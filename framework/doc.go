// Package framework is the managed ZooKeeper client on which docent's recipes are built. Other code
// may build on it, too.
//
// A [Client] keeps one session with an ensemble. It reconnects, starts a new session if the old
// session has ended, notifies its listeners of its state, and retries operations by a policy.
// Operations are synchronous, take a context, and return promptly when it ends, also if no server
// can be reached.
//
// Most programs need ten names: [NewClient] with [WithSessionTimeout] and [WithSlog], [Client.Close],
// [Client.Get], [Client.Set], [Client.Create] and [Client.Delete], [Client.OnState], and the error
// [ErrNotConnected]. The recipes are below package recipes; package recipes/lock has the locks. What
// only authors of recipes need is at the end of this page.
//
// Stability: stable.
//
// # States
//
// A client is Connecting until it has its first session, then Connected. It is Suspended while it
// has no connection and its session is still valid. It is Lost when the session is over, and
// Connected again with the next session. [State] has all transitions. The client is AuthFailed
// while a server refuses its credentials. A client [WithReadOnly] is ReadOnly while it can only
// read, from a server that has lost its quorum. If no server can be reached, the client's own clock
// decides when the session is Lost. [Client.OnState] gets every transition, in order;
// [CircuitBreaking] merges the transitions of a connection that flaps.
//
// # Sessions
//
// Ephemeral znodes and locks are bound to a session and end with it. The ensemble decides when a
// session ends. The client knows only until when the session is certainly valid:
// [Session.Deadline]. An owner of ephemeral znodes takes a [SessionHold], which keeps the deadline
// fresh. A secured hold ends the session for all its holds the moment the deadline passes.
// [Client.InSession] binds operations to one session.
//
// # Paths
//
// A path is absolute ("/a/b") and lies below the chroot of the connect string and the namespace of
// the client. [Client.Namespace] and [Client.Root] return views with other paths, and
// [Client.AbsolutePath] returns the path in the ensemble. [ValidatePath] has the rules.
//
// # Watches and transactions
//
// [Client.Watch] reads a znode, its existence or its children. It notifies once that the result has
// changed, or may have changed; then the caller reads again. It never misses a change and doesn't
// count them. [Client.Txn] does several operations or none.
//
// # Retries
//
// An operation is retried by the client's policy ([WithRetry]) until its context ends. If the
// request was never sent, it is always retried. If its outcome is unknown, it is retried only if a
// second request can't have a further effect. Create is safe to retry if it is [Protected].
// [Idempotent] makes Create, Set and Delete succeed if they find their effect already there.
//
// # Errors
//
// An operation that fails returns an [*OpError] that wraps a server's error ([ErrNoNode], …), or
// one of
//
//   - [ErrNotConnected]: the request was never sent, so it had no effect;
//   - [ErrUnknownOutcome]: the connection broke, or ctx ended, between the request and the reply of
//     an attempt, so the attempt may have had its effect;
//   - [ErrSessionEnded], for operations bound to a session;
//   - [ErrAuthFailed], while a server refuses a credential;
//   - [ErrReadOnly], from all but reads while the client is ReadOnly;
//   - [ErrTooLarge], for a request that no server would accept;
//   - [ErrClosed];
//   - ctx's error, and its cause.
//
// If the policy allowed retries and they were used up, a [retry.ExhaustedError] is in between.
//
// # Telemetry
//
// The client has OpenTelemetry spans for operations, and metrics of operations, sessions and
// states. It logs by zap or log/slog: [WithTracerProvider], [WithMeterProvider],
// [WithOperationSpans], [WithLogger], [WithSlog]. Names and attributes are constants of the package
// zktel; docs/observability.md has their meaning. No telemetry contains credentials or data of
// znodes.
//
// # Concurrency
//
// All methods of all types may be called concurrently, unless a type says otherwise. Listeners run
// on goroutines of their own and may call the client.
//
// # For authors of recipes
//
// docent's recipes are built on the exported names of this package, and so can yours be;
// examples/your-own-recipe is one. A recipe's author needs more than reads and writes:
//
//   - a session that the recipe may rely on: [Client.HoldSession] keeps the session's deadline
//     fresh, and [SessionHold.Secure] binds the hold to the deadline. [SessionHold.OnLost] reports
//     the loss before another client can be granted what was held. [Client.InSession] binds the
//     requests to that session. If [SessionHold.Breaks] returns the same number twice, no
//     connection broke in between;
//   - a create whose lost reply leaves no orphan: [Protected] if the server numbers the znodes,
//     [KnownByData] if the name is given, [Client.CreateAll] for several znodes at once.
//     [WithEpoch] tells apart the znodes that exist at a path one after another;
//   - a listing or a watch after a create, within the same round trip: [ListTo], [WatchTo];
//   - a delete that means one znode and is repeated until that znode is gone: [CreatedBy],
//     [AtEpoch], [Guaranteed], [WhenOver], and [Client.Discard], which does not wait;
//   - watches for many znodes: [Client.WatchEach], [Watch.AfterFire] if no goroutine is to wait,
//     [Watch.Valid] to know that nothing has changed;
//   - an operation for a user's transaction: [OpCheck], [OpAtEpoch], and [OpNever], which fails;
//   - values that all parts of a recipe on one client share: [Shared], and
//     [Client.AbsolutePath], by which two views refer to one znode. [Client.Root] reaches such a
//     path.
package framework
