package goid

// The two ways and the choice between them.
var (
	FromRecord = fromRecord
	FromHeader = fromHeader
	Choose     = choose
)
