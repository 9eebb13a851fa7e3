// Package otelzk makes the client's spans and keeps its metrics. It knows only the names of
// operations, states and sessions.
package otelzk
