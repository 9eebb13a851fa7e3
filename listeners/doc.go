// Package listeners calls registered functions for events of one type.
//
// A [Queued] never calls a listener on the goroutine that notifies. Each listener has a queue and,
// while the queue has events, its own goroutine. A listener that blocks or panics affects neither
// the caller of Notify nor other listeners.
//
// Stability: stable.
//
// # What holds
//
//   - Every listener sees the events in the order in which Notify was called. Of concurrent calls, all
//     listeners see the same order. Calls of one listener never overlap.
//   - A listener is called for the events that are notified after its
//     registration, and for none before it.
//   - No event is dropped or merged with another.
//   - Adding the same function twice makes two listeners of it.
//   - remove may be called more than once, and from anywhere, a listener included. It waits for a running
//     call.
//   - A listener may call any method of the value that it is registered with.
//   - If a listener ends its goroutine by [runtime.Goexit], as a failing test does, no listener
//     misses an event.
//   - A nil listener is a broken program: Add panics.
//
// # Queues without bound
//
// The queue of a Queued has no bound, because no event is dropped. A listener that stays behind
// forever costs memory for every event that it has not seen. So events should be rare, such as the
// states of a connection.
//
// # Concurrency
//
// All methods and the remove functions may be called concurrently. No lock is
// held while a listener runs.
package listeners
