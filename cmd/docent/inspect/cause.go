package inspect

import (
	"context"
	"errors"
	"strings"
)

// An unready error says why a cache is not ready. It has the text of the error that the cache returned, and
// wraps what that wraps, both without the end of the context by which the cache was asked.
type unready struct {
	text   string
	causes []error
}

// Error returns the text.
func (u *unready) Error() string { return u.text }

// Unwrap returns the causes.
func (u *unready) Unwrap() []error { return u.causes }

// causeOf returns err without [context.Canceled]; nil for nil.
func causeOf(err error) error {
	if !errors.Is(err, context.Canceled) {
		return err
	}
	return &unready{strings.ReplaceAll(err.Error(), context.Canceled.Error()+": ", ""), causesOf(err)}
}

// causesOf returns the largest parts of err that do not wrap context.Canceled.
func causesOf(err error) []error {
	if !errors.Is(err, context.Canceled) {
		return []error{err}
	}
	var found []error
	switch e := err.(type) { //nolint:errorlint // the tree is walked here
	case interface{ Unwrap() []error }:
		for _, part := range e.Unwrap() {
			found = append(found, causesOf(part)...)
		}
	case interface{ Unwrap() error }:
		found = causesOf(e.Unwrap())
	}
	return found
}
