// Package retry repeats a failed operation as a policy allows, until a context ends.
//
// A [Policy] is an immutable value. It may be kept in a configuration and shared between
// goroutines. Each call of [Do] or [Value] that fails at least once takes its own
// [github.com/cenkalti/backoff/v4.BackOff] from it. The BackOff says how long to wait before each
// retry, and when to stop.
//
// Do does not judge errors: it retries after any error that is not marked with [Permanent]. It does
// not make fn safe to repeat either, because a failed attempt may have had an effect.
//
// Stability: stable.
//
// # Counting
//
// As in Apache Curator, n counts retries: a policy of n retries makes at most
// n+1 attempts.
//
//	Never()                             1 attempt
//	Once(wait)                          2 attempts
//	Times(n, wait)                      n+1 attempts, the same wait before each retry
//	Forever(wait)                       until fn succeeds or ctx ends
//	Within(limit, wait)                 no wait that would end later than limit after the start
//	Exponential(base, n)                n+1 attempts, random waits that grow
//	BoundedExponential(base, max, n)    the same, and no wait above max
//
// # Errors
//
// Do returns one of these, in this order of precedence:
//
//   - the faults of an invalid policy or option, each of which is [ErrInvalid], before fn is called;
//   - nil, as soon as fn returned nil, whatever ctx says by then;
//   - the error that fn marked with [Permanent], without its mark;
//   - an error that is ctx.Err(), the cause of ctx and the last attempt's error, if there was an attempt;
//   - fn's error, as it is, if the policy allowed no retry after the first attempt;
//   - an [*ExhaustedError] around the last attempt's error, if it allowed some and then no more.
//
// # Concurrency
//
// Every function of this package may be called concurrently, with one policy
// too. Nothing here starts a goroutine: fn and the hook of [OnRetry] run on the
// goroutine that called Do, one at a time.
package retry
