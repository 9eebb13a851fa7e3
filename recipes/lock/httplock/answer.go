package httplock

import (
	"bufio"
	"errors"
	"net"
	"net/http"
)

// An answer records whether the function has begun its answer.
type answer struct {
	http.ResponseWriter
	begun    bool // a part of it may have been sent
	hijacked bool // the connection is the function's
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
	err := http.NewResponseController(a.ResponseWriter).Flush()
	a.begun = a.begun || !errors.Is(err, http.ErrNotSupported)
	return err
}

// Hijack implements [http.Hijacker].
func (a *answer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(a.ResponseWriter).Hijack()
	a.hijacked = a.hijacked || err == nil
	return conn, buffered, err
}

// Unwrap returns the wrapped writer, for [http.ResponseController].
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
