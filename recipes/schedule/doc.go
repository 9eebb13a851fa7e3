// Package schedule runs a job once in a fleet for each slot of its schedule: a nightly report, an hourly
// clean-up, a bill at the first of the month.
//
// Begin with [New] and [Schedule.Run]. Every host calls Run for every slot. A slot is a time of the
// schedule, such as 03:00 of a day, which all hosts compute alike, and never the time of a host's clock.
//
//	nightly, err := schedule.New(client, "/jobs/nightly")
//	// at 03:00, on every host:
//	result, err := nightly.Run(ctx, threeOClock, func(ctx context.Context, l *lease.Lease) error {
//		return report(ctx) // stops when ctx ends
//	})
//
// Stability: may change.
//
// # What it promises
//
// A lock is held while the function works, and excludes all other runs of the path. A mark, which
// outlives the lock, says that the slot's run has begun, and another one that it has ended. Both are
// written in transactions that fail unless the lock is still held. So for each slot
//
//   - one function works at a time;
//   - no function begins after one has ended and its end was recorded, however short it was, however far
//     apart the hosts' clocks are, and however late a host comes;
//   - no function begins after another one, unless [WithRerun] allows it: at most once. If a host dies in
//     the middle, the slot is [LostInTheMiddle];
//   - with WithRerun, a run that was lost in the middle is repeated by a host that calls Run, or that waits
//     in it: at least once, if a host lives. A run whose end could not be recorded is repeated, too
//     ([ErrUnmarked]).
//
// As with every lease, a process that was stopped may go on for a moment after its loss. For what must not
// be written twice use the lease's Fence, or its Guards in the transaction that writes.
//
// # Slots
//
// Slots are instants, in whole seconds. They only move on: once a slot has begun, an earlier one that no
// host has begun is [Missed], and so is one that is earlier than all kept runs, because its outcome is not
// known. Clocks that are apart by less than the time between two slots miss nothing. docent compares no
// clocks. Two local times that are one instant are one slot; a local time that occurs twice when summer
// time ends is two.
//
// A run takes as long as it takes. The next slot's calls wait for it, as long as [WithWait] allows, and
// so do calls in an outage. If several slots wait, the one that is first to begin passes the earlier ones.
//
// # Znodes
//
//	/jobs/nightly                     persistent: the last runs, as JSON
//	/jobs/nightly/lock                ephemeral: who is at work, as an UnfairMutex's
//	/jobs/nightly/lock.docent-epoch   persistent: counts the lock's holders
//
// Nothing else may be below the path. Who deletes the path's znode has all slots forgotten.
package schedule
