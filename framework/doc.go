// Package framework is the managed ZooKeeper client on which docent's recipes are built. Other code
// may build on it, too.
//
// A [Client] keeps one session with an ensemble. It reconnects, starts a new session if the old
// session has ended, notifies its listeners of its state, and retries operations by a policy.
// Operations are synchronous, take a context, and return promptly when it ends, even if no server
// can be reached.
//
// Most programs need ten names: [NewClient] with [WithSessionTimeout] and [WithSlog], [Client.Close],
// [Client.Get], [Client.Set], [Client.Create] and [Client.Delete], [Client.OnState], and the error
// [ErrNotConnected]. The recipes are below package recipes; package recipes/lock has the locks. The
// other names are for tuning, and for [authors of recipes].
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
// decides when the session is Lost. [Client.OnState] gets every transition, in order.
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
// states. It logs by zap or log/slog: [WithTracerProvider], [WithMeterProvider], [WithLogger],
// [WithSlog]. Names and attributes are constants of the package zktel; docs/observability.md has
// their meaning. No telemetry contains credentials or data of znodes.
//
// # Concurrency
//
// All methods of all types may be called concurrently, unless a type says otherwise. Listeners run
// on goroutines of their own and may call the client.
//
// [authors of recipes]: https://github.com/docent-go/docent/blob/main/docs/authors.md
package framework
