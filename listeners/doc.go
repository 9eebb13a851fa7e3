// Package listeners calls registered functions for events of one type.
//
// A [Set] calls its listeners one after another on the goroutine that notifies:
// when Notify returns, all have been called. It suits listeners that are quick
// and trusted.
//
// A [Queued] never calls a listener on the goroutine that notifies. Each listener has a queue and,
// while the queue has events, its own goroutine. A listener that blocks or panics affects neither
// the caller of Notify nor other listeners. It suits listeners of other authors.
//
// Stability: stable.
//
// # What holds for both
//
//   - Every listener sees the events in the order in which Notify was called; of
//     concurrent calls, all listeners of a Queued see the same order.
//   - A listener is called for the events that are notified after its
//     registration, and for none before it.
//   - No event is dropped or merged with another.
//   - Adding the same function twice makes two listeners of it.
//   - remove may be called more than once, and from anywhere, a listener included.
//   - A listener may call any method of the value that it is registered with.
//   - If a listener ends its goroutine by [runtime.Goexit], as a failing test does, no listener
//     misses an event.
//   - A nil listener is a broken program: Add panics.
//
// # What differs
//
//	                          Set                          Queued
//	zero value                is empty and ready           is not: see NewQueued
//	Notify                    calls the listeners          puts the event in the queues
//	calls of one listener     overlap if Notify does       never overlap
//	remove                    waits for nothing            waits for a running call
//	a panic                   goes to OnPanic, if set      goes to the function given to NewQueued
//	end                       none needed                  Close
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
