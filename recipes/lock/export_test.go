package lock

// What reads the data of znodes, for the fuzz target.
var (
	DecodeMetadata  = decodeMetadata
	RequestsRelease = requestsRelease
)
