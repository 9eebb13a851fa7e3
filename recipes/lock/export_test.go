package lock

// RequestsRelease reads the data of a znode, for the fuzz target.
var RequestsRelease = requestsRelease
