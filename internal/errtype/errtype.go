// Package errtype gives errors a type for telemetry: a short name that is
// stable and one of few, as OpenTelemetry's attribute error.type wants it.
package errtype

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"unicode/utf8"
)

// Types of errors that are not of this module.
const (
	Canceled         = "canceled"           // a context was cancelled
	DeadlineExceeded = "deadline_exceeded"  // a context's deadline passed
	Refused          = "connection_refused" // no process listens at the server's address
	Other            = "_OTHER"             // OpenTelemetry's name for any other
)

// LockLost is the type of a loss. It has a name because a loss ends contexts: see package cause.
const LockLost = "lock_lost"

// A sentinel is an error to compare with, that has a type.
type sentinel struct {
	text, kind string
	parent     error // of which it is a special case; nil for none
}

// New returns an error as errors.New does, whose method ErrorType returns kind.
func New(text, kind string) error { return &sentinel{text: text, kind: kind} }

// NewOf returns an error as [New] does, that wraps parent. Its text is the
// parent's, a colon and text.
func NewOf(parent error, text, kind string) error {
	return &sentinel{parent.Error() + ": " + text, kind, parent}
}

func (s *sentinel) Error() string { return s.text }

// Unwrap returns the more general error.
func (s *sentinel) Unwrap() error { return s.parent }

// ErrorType returns the error's type for telemetry.
func (s *sentinel) ErrorType() string { return s.kind }

// IsAnswer reports whether err is itself an error of [New] or [NewOf], and no loss. Code decides by
// such errors.
func IsAnswer(err error) bool {
	s, ok := err.(*sentinel) //nolint:errorlint // this very error
	return ok && s.kind != LockLost
}

// Of returns the type of err, "" for nil. The outermost error that has a method
// ErrorType and is more than a sentinel says it. Else the end of a context does,
// then the first sentinel.
func Of(err error) string {
	if err == nil {
		return ""
	}
	kind, certain := find(err)
	switch {
	case certain:
		return kind
	case errors.Is(err, context.Canceled):
		return Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return DeadlineExceeded
	case kind != "":
		return kind
	case errors.Is(err, syscall.ECONNREFUSED):
		return Refused
	}
	return Other
}

// unwrapped returns what err wraps.
func unwrapped(err error) []error {
	switch u := err.(type) { //nolint:errorlint // unwrapping is what this does
	case interface{ Unwrap() []error }:
		return u.Unwrap()
	case interface{ Unwrap() error }:
		return []error{u.Unwrap()}
	}
	return nil
}

// find returns the type that err or what it wraps has by itself, depth first,
// and whether that goes before the end of a context.
func find(err error) (kind string, certain bool) {
	if typed, ok := err.(interface{ ErrorType() string }); ok { // the tree is walked here
		_, compared := err.(*sentinel) //nolint:errorlint // this very error
		return typed.ErrorType(), !compared
	}
	for _, inner := range unwrapped(err) {
		found, certain := find(inner)
		if certain {
			return found, true
		}
		if kind == "" {
			kind = found
		}
	}
	return kind, false
}

// Path returns a path as the text of an error shows it: not too long, and quoted if it has a
// character that could end the line or that can't be printed.
func Path(path string) string {
	path = Shortened(path)
	if strings.ContainsFunc(path, func(r rune) bool { return r == utf8.RuneError || !strconv.IsPrint(r) }) {
		return strconv.Quote(path)
	}
	return path
}

// maxShownPath is how much of a path an error shows, in bytes.
const maxShownPath = 256

// Shortened returns the path if it is not too long, and its beginning if it is. It cuts between two
// characters.
func Shortened(path string) string {
	if len(path) <= maxShownPath {
		return path
	}
	end := maxShownPath
	for end > maxShownPath-utf8.UTFMax && !utf8.RuneStart(path[end]) {
		end--
	}
	return fmt.Sprintf("%s… (%d bytes)", path[:end], len(path))
}

// A ChildlessError is the error of a create below an ephemeral znode, whose path in the ensemble it has.
type ChildlessError struct {
	Path string
	Err  error
}

// Error returns the server's reason, and the path.
func (e *ChildlessError) Error() string { return fmt.Sprintf("%v: %s is one", e.Err, Path(e.Path)) }

// Unwrap returns the server's reason.
func (e *ChildlessError) Unwrap() error { return e.Err }
