// Package contender has the common parts of recipes whose contenders wait for a lease: the znode's
// data, the grant of a queue, the list of participants, the errors of a wait and the report to
// telemetry.
package contender
