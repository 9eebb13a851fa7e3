// Package gocrondocent lets schedulers of gocron v2 share their jobs among hosts. It is a module of its own,
// so that gocron stays out of docent's requirements. Take one of two:
//
//   - [NewLocker] runs each job on any host, once for each slot (package schedule). The last runs of a job are
//     kept. A plain Locker, which holds a lock for the job's duration alone, has a short job run on every host
//     whose clock is later.
//   - [NewElector] runs all jobs on one host, as long as it lives.
//
// gocron gives jobs no context that ends with the lock, and tells a Locker no error of a job, no panic, and no
// refusal of BeforeJobRuns: each counts as done. Where that matters, have the job call [schedule.Schedule.Run] itself.
//
// Stability: may change.
package gocrondocent
