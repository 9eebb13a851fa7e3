// Package framework is the managed ZooKeeper client that docent's recipes
// stand on, and that everything else may stand on too.
//
// A [Client] keeps one session with an ensemble. It reconnects, starts a new
// session where the old one has ended, tells its listeners what state it is in,
// and retries operations by a policy. Operations are synchronous, take a
// context, and return promptly when it ends, with no server reachable too.
//
// # States
//
// A client is Connecting until it has its first session, then Connected. It is
// Suspended while the connection is away and the session still stands, Lost when
// the session is over, and Connected again with the next one: see [State]. It
// is AuthFailed while a server refuses its credentials. A client [WithReadOnly] is ReadOnly
// while it can only read, from a server that has lost its quorum.
// Lost is declared by the client's own clock where no server can be asked.
// [Client.OnState] gets every transition, in order; [CircuitBreaking] folds
// those of a connection that flaps.
//
// # Sessions
//
// What is bound to a session (an ephemeral znode, a lock) ends with it. The
// ensemble decides when that is; the client can only say until when the session
// certainly stands: [Session.Deadline]. Whoever holds something in a session
// takes a [SessionHold], which keeps the deadline fresh and ends the session, for
// everybody who holds it, the moment the deadline passes. [Client.InSession]
// binds operations to one session.
//
// # Paths
//
// A path is absolute ("/a/b") and lies below the chroot of the connect string and
// the namespace of the client: [Client.Namespace], [Client.Root], and
// [Client.AbsolutePath], which tells where that is. [ValidatePath] has the rules.
//
// # Watches and transactions
//
// [Client.Watch] reads a znode, its existence or its children, and tells once that
// the answer is out of date, or may be; then one reads again. It never
// misses a change and doesn't count them. [Client.Txn] does several operations or
// none.
//
// # Retries
//
// An operation is retried by the client's policy ([WithRetry]) for as long as
// its context lasts: always where the request was never sent, and where its outcome
// is unknown if a second request can't do more than the first. Create is safe to
// retry when it is [Protected]; [Idempotent] makes Create, Set and Delete
// succeed where they find done what they were to do.
//
// # Recipes
//
// docent's recipes are built on the exported names of this package, and so can yours be;
// examples/your-own-recipe is one. What a recipe's author needs beyond reads and writes:
//
//   - a session that it may rely on: [Client.HoldSession] keeps the session's deadline fresh,
//     [SessionHold.Secure] binds the hold to the deadline, and [SessionHold.OnLost] passes the loss
//     on before another client can be granted what was held. [Client.InSession] binds the requests
//     to that session. If [SessionHold.Breaks] returns the same number twice, no connection broke
//     in between;
//   - a create whose lost reply leaves no orphan: [Protected] where the server numbers the znodes,
//     [KnownByData] where the name is given, [Client.CreateAll] for several znodes at once.
//     [WithEpoch] tells the znodes apart that one after another exist at a path;
//   - what to read or to watch behind a create, within the same round trip: [ListTo], [WatchTo];
//   - a delete that means one znode and is repeated until it is gone: [CreatedBy], [AtEpoch],
//     [Guaranteed], [WhenOver], and [Client.Discard], which does not wait;
//   - watches for many znodes: [Client.WatchEach], [Watch.AfterFire] where no goroutine is to wait,
//     [Watch.Valid] to know that nothing has changed;
//   - an operation for a user's transaction: [OpCheck], [OpAtEpoch], and [OpNever], which fails;
//   - what all values of a recipe on one client share: [Client.Shared], and [Client.AbsolutePath],
//     by which two views mean one znode. [Client.Root] leads to such a path.
//
// # Errors
//
// An operation that fails returns an [*OpError] that wraps what a server
// answered ([ErrNoNode], …), or one of
//
//   - [ErrNotConnected]: the request was never sent, so it had no effect;
//   - [ErrUnknownOutcome]: the connection broke, or ctx ended, between request
//     and reply, so it may have had its effect;
//   - [ErrSessionEnded], for operations bound to a session;
//   - [ErrAuthFailed], while a server refuses a credential;
//   - [ErrReadOnly], from all but reads while the client is ReadOnly;
//   - [ErrTooLarge], for a request that no server would take;
//   - [ErrClosed];
//   - ctx's error, and its cause.
//
// Where the policy allowed retries and they were used up, a
// [retry.ExhaustedError] stands in between.
//
// # Telemetry
//
// The client has OpenTelemetry spans for operations and metrics of operations, sessions
// and states, and it logs, by zap or log/slog: [WithTracerProvider],
// [WithMeterProvider], [WithOperationSpans], [WithLogger], [WithSlog]. Names and
// attributes are constants here, and in docs/observability.md with their
// meaning. None of it has credentials or data of znodes in it.
//
// # Concurrency
//
// All methods of all types may be called concurrently. Listeners run on
// goroutines of their own and may call the client.
package framework
