// Package otelzk makes the client's spans and keeps its metrics. It knows operations, states and
// sessions by their names alone.
package otelzk
