// Package chaos runs real clients with locks and elections on a real ensemble, injects faults, and
// checks the history of what they did. It consists of tests. README.md says who takes part, which
// faults there are, what is checked, and when a run fails because nothing could have been found.
package chaos
