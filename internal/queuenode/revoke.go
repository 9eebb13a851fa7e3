package queuenode

import (
	"bytes"
	"compress/gzip"
	"io"
)

// RevokeMark is the data of a contender's znode after another client has asked it to release:
// Curator's (org.apache.curator.framework.recipes.locks.Revoker).
const RevokeMark = "__REVOKE__"

// RequestsRelease reports whether the data of a contender's znode, of that version, is a request to
// release. Data of version 0 is the contender's own.
func RequestsRelease(data []byte, version int32) bool {
	return version != 0 && string(inflated(data)) == RevokeMark
}

// inflated returns the data, uncompressed if necessary: a Curator process that compresses data
// compresses requests too.
func inflated(data []byte) []byte {
	compressed, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return data
	}
	plain, err := io.ReadAll(io.LimitReader(compressed, int64(len(RevokeMark))+1))
	if err != nil {
		return data
	}
	return plain
}
