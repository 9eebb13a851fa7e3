package main

import "time"

// A usage is the processor time that a process has used since it began, in all its threads.
type usage struct{ cpu time.Duration }
