// Package reading decodes the znodes of a directory. It decodes each state of a znode once, and
// reports each state that it can't decode once.
package reading

import "sync"

// maxReported bounds the znodes that a Reader remembers.
const maxReported = 10_000

// A Reader decodes znodes. Its methods may be called concurrently.
type Reader[T any] struct {
	Decode func(data []byte) (T, error)
	Report func(path string, err error) // is called for a state that can't be decoded or read

	mu       sync.Mutex       // guards following; not held during Report
	reported map[string]int64 // mzxid of the last report, by path
}

// refuse reports that the znode at path can't be read in the state since mzxid, if it has not done so
// yet.
func (r *Reader[T]) refuse(path string, mzxid int64, err error) {
	r.mu.Lock()
	last, known := r.reported[path]
	if r.reported == nil || len(r.reported) >= maxReported {
		r.reported = make(map[string]int64) // some are reported again
	}
	r.reported[path] = mzxid
	r.mu.Unlock()
	if !known || last != mzxid {
		r.Report(path, err)
	}
}
