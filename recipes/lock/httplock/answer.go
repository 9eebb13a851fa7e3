package httplock

import (
	"bufio"
	"net"
	"net/http"
)

// An answer records whether the function has begun its answer.
type answer struct {
	http.ResponseWriter
	begun bool
}

// WriteHeader implements [http.ResponseWriter]. An informational answer is not the beginning.
func (a *answer) WriteHeader(status int) {
	a.begun = a.begun || status >= http.StatusOK || status == http.StatusSwitchingProtocols
	a.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (a *answer) Write(p []byte) (int, error) {
	a.begun = true
	return a.ResponseWriter.Write(p)
}

// Flush implements [http.Flusher].
func (a *answer) Flush() { _ = a.FlushError() }

// FlushError sends what was written, and the header.
func (a *answer) FlushError() error {
	a.begun = true
	return http.NewResponseController(a.ResponseWriter).Flush()
}

// Hijack implements [http.Hijacker].
func (a *answer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	a.begun = true
	return http.NewResponseController(a.ResponseWriter).Hijack()
}

// Unwrap returns the wrapped writer, for [http.ResponseController].
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
