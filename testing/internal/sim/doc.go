// Package sim has no code of its own, only tests: clients, locks and a ZooKeeper in one
// bubble of virtual time, where a seed decides what everybody does and what goes
// wrong, and where a validator for each guarantee looks on. docs/simulation.md says what is
// simulated, how a failure is replayed, and what this is not.
package sim
