// Package sim has no code of its own, only tests. They run clients, locks and a ZooKeeper in one
// bubble of virtual time. A seed decides what each of them does and which faults it has. A
// validator for each guarantee watches. README.md says what is simulated, how to replay a
// failure, and what this is not.
package sim
