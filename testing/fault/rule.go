package fault

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Forever as [Rule.Times] lets a rule hit until it is removed.
const Forever = -1

// A Rule says which frames meet which fate, and how often. All conditions that are
// given must hold. The zero value of every field but Action is the usual choice.
type Rule struct {
	// Session is the id of the session whose frames are meant; 0 means every
	// session.
	Session int64

	// Op is the kind of frame that is meant; 0 means every request but a Ping, and
	// neither the handshake nor an event.
	Op Op

	// Path is the pattern of the path that is meant; the empty pattern means every frame, with or
	// without a path. A * matches any run of characters within one node name, the empty one
	// included. A ** matches any run of characters. So "/locks/*" means the children of /locks,
	// and "/locks/**" means everything below it. "/locks/read-*" also means the sequential create
	// of "/locks/read-". A Multi is meant if any of its operations' paths is.
	Path string

	// Action is the fault of the frames. There is no default.
	Action Action

	// Delay is the duration of a DelayRequest or DelayReply, and 0 otherwise.
	Delay time.Duration

	// Code is the error code of a Refuse, and 0 otherwise. A Refuse hits only requests that
	// servers answer with the Code: Throttled, for example, no Ping and no CloseSession.
	Code Code

	// Skip is the number of frames that the rule passes before its first hit.
	Skip int

	// Times is how often the rule hits; 0 means once. See [Forever].
	Times int
}

// Validate returns every fault of the rule joined, each with the field, its value and its bound.
// It returns nil if the rule can be added to [Rules].
func (r Rule) Validate() error {
	var faults []error
	refuse := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("fault: "+format, args...))
	}
	opKnown := r.Op == 0 || r.Op.known()
	if !opKnown {
		refuse("op %v: must be 0 or one of the package's constants", r.Op)
	}
	switch {
	case !r.Action.known():
		refuse("action %v: must be one of the package's constants", r.Action)
	case opKnown && !r.Action.suits(r.Op):
		refuse("action %v: can't befall op %v", r.Action, r.opName())
	}
	if r.Path != "" && !startsAtRoot(r.Path) {
		refuse("path %q: must be empty or start with / or **", r.Path)
	}
	if r.Path != "" && opKnown && !r.Op.hasPath() {
		refuse("path %q: must be empty, op %v carries none", r.Path, r.Op)
	}
	if r.Action.delays() && r.Delay <= 0 {
		refuse("delay %v: must be more than 0 with action %v", r.Delay, r.Action)
	}
	if r.Action.known() && !r.Action.delays() && r.Delay != 0 {
		refuse("delay %v: must be 0 with action %v", r.Delay, r.Action)
	}
	if err := r.codeFault(); err != nil {
		faults = append(faults, err)
	}
	if r.Skip < 0 {
		refuse("skip %d: must be at least 0", r.Skip)
	}
	if r.Times < Forever {
		refuse("times %d: must be at least 0, or Forever", r.Times)
	}
	return errors.Join(faults...)
}

// codeFault returns what is wrong with the rule's Code.
func (r Rule) codeFault() error {
	switch {
	case r.Action != Refuse && r.Code != 0:
		return fmt.Errorf("fault: code %v: must be 0 with action %v", r.Code, r.Action)
	case r.Action == Refuse && !r.Code.known():
		return fmt.Errorf("fault: code %v: must be one of the package's constants with action Refuse", r.Code)
	case r.Action == Refuse && r.Op.known() && !r.Code.answers(r.Op):
		return fmt.Errorf("fault: code %v: no server answers op %v with it", r.Code, r.Op)
	}
	return nil
}

// String returns the rule in one line, such as
// "DropReply of Create on /locks/* (once)", to be used in a test's messages.
func (r Rule) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v", r.Action)
	if r.Delay != 0 {
		fmt.Fprintf(&b, " by %v", r.Delay)
	}
	if r.Code != 0 {
		fmt.Fprintf(&b, " with %v", r.Code)
	}
	fmt.Fprintf(&b, " of %s", r.opName())
	if r.Path != "" {
		fmt.Fprintf(&b, " on %s", r.Path)
	}
	if r.Session != 0 {
		fmt.Fprintf(&b, " in session %#x", r.Session)
	}
	switch {
	case r.Times == Forever:
		b.WriteString(" (forever")
	case r.Times <= 1:
		b.WriteString(" (once")
	default:
		fmt.Fprintf(&b, " (%d times", r.Times)
	}
	if r.Skip > 0 {
		fmt.Fprintf(&b, " after %d", r.Skip)
	}
	b.WriteString(")")
	return b.String()
}

func (r Rule) opName() string {
	if r.Op == 0 {
		return "any request"
	}
	return r.Op.String()
}

// names reports whether the rule means f, whatever its count.
func (r Rule) names(f Frame) bool {
	if r.Session != 0 && r.Session != f.Session {
		return false
	}
	if r.Op != f.Op && (r.Op != 0 || !f.Op.unnamed()) {
		return false
	}
	if r.Action == Refuse && !r.Code.answers(f.Op) {
		return false
	}
	if r.Path == "" {
		return true
	}
	for path := range f.paths() {
		if matchPath(r.Path, path) {
			return true
		}
	}
	return false
}

// startsAtRoot reports whether the pattern can match a path at all.
func startsAtRoot(pattern string) bool {
	return strings.HasPrefix(pattern, "/") || strings.HasPrefix(pattern, "**")
}

// matchPath reports whether path matches pattern, in which * matches any run of characters but
// slashes and ** matches any run.
//
// path.Match is not used: brackets and backslashes are plain characters of a node's name, and it
// has no **.
func matchPath(pattern, path string) bool {
	star := strings.IndexByte(pattern, '*')
	if star < 0 {
		return pattern == path
	}
	if !strings.HasPrefix(path, pattern[:star]) {
		return false
	}
	path = path[star:]
	rest, anything := strings.CutPrefix(pattern[star+1:], "*")
	for i := 0; ; i++ {
		if matchPath(rest, path[i:]) {
			return true
		}
		if i == len(path) || (path[i] == '/' && !anything) {
			return false
		}
	}
}
