package locktest

import (
	"bytes"
	"runtime"
)

// goroutines returns how many goroutines the caller's synctest bubble has, and 0 outside of one.
// The runtime distinguishes bubbles only in the headers of its stack dump, where the caller comes
// first. For example: "goroutine 7 [select, synctest bubble 5]:".
func goroutines() int {
	dump := make([]byte, 1<<20)
	for {
		n := runtime.Stack(dump, true)
		if n < len(dump) {
			dump = dump[:n]
			break
		}
		dump = make([]byte, 2*len(dump))
	}
	header, _, _ := bytes.Cut(dump, []byte("\n"))
	_, bubble, in := bytes.Cut(header, []byte("synctest bubble "))
	if !in {
		return 0
	}
	bubble = bytes.TrimSuffix(bubble, []byte(":"))
	return bytes.Count(dump, append([]byte("synctest bubble "), bubble...))
}
