package fault_test

import (
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/testing/fault"
)

func TestValidate(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name string
		rule fault.Rule
		want []string // one line each
	}{
		{"an action alone is a rule", fault.Rule{Action: fault.CutBefore}, nil},
		{"everything may be given", fault.Rule{
			Session: -7, Op: fault.Create, Path: "/locks/*", Action: fault.DelayReply,
			Delay: time.Second, Skip: 2, Times: fault.Forever,
		}, nil},
		{"a pattern may start with any run", fault.Rule{Path: "**/x", Action: fault.Pass}, nil},
		{"an event may be held", fault.Rule{Op: fault.Event, Action: fault.HoldReply}, nil},
		{"there is no default action", fault.Rule{Op: fault.Create}, []string{
			"fault: action Action(0): must be one of the package's constants",
		}},
		{"all faults are told at once", fault.Rule{
			Op: 99, Path: "locks", Action: fault.DelayReply, Skip: -1, Times: -2,
		}, []string{
			"fault: op Op(99): must be 0 or one of the package's constants",
			`fault: path "locks": must be empty or start with / or **`,
			"fault: delay 0s: must be more than 0 with action DelayReply",
			"fault: skip -1: must be at least 0",
			"fault: times -2: must be at least 0, or Forever",
		}},
		{"a refusal needs a code", fault.Rule{Op: fault.Create, Action: fault.Refuse}, []string{
			"fault: code Code(0): must be one of the package's constants with action Refuse",
		}},
		{"a code needs a refusal", fault.Rule{Action: fault.CutBefore, Code: fault.Throttled}, []string{
			"fault: code Throttled: must be 0 with action CutBefore",
		}},
		{"servers throttle no ping", fault.Rule{Op: fault.Ping, Action: fault.Refuse, Code: fault.Throttled}, []string{
			"fault: code Throttled: no server answers op Ping with it",
		}},
		{"any request may be throttled", fault.Rule{Action: fault.Refuse, Code: fault.Throttled}, nil},
		{"garbage answers no request", fault.Rule{Op: fault.Create, Action: fault.Garbage}, []string{
			"fault: action Garbage: can't befall op Create",
		}},
		{"any request is not the handshake", fault.Rule{Action: fault.HalfAnswer}, []string{
			"fault: action HalfAnswer: can't befall op any request",
		}},
		{"only events can be dropped", fault.Rule{Op: fault.Sync, Action: fault.DropEvent}, []string{
			"fault: action DropEvent: can't befall op Sync",
		}},
		{"an event has no reply to be dropped", fault.Rule{Op: fault.Event, Action: fault.DropReply}, []string{
			"fault: action DropReply: can't befall op Event",
		}},
		{"pings carry no path", fault.Rule{Op: fault.Ping, Path: "/a", Action: fault.CutBefore}, []string{
			`fault: path "/a": must be empty, op Ping carries none`,
		}},
		{"a delay needs an action that delays", fault.Rule{Action: fault.HoldReply, Delay: time.Second}, []string{
			"fault: delay 1s: must be 0 with action HoldReply",
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var got string
			if err := c.rule.Validate(); err != nil {
				got = err.Error()
			}
			if want := strings.Join(c.want, "\n"); got != want {
				t.Errorf("Validate() =\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestAddRefusesAnInvalidRule(t *testing.T) {
	t.Parallel()
	defer func() {
		got, _ := recover().(string)
		const want = "fault: Rules.Add(Garbage of Create (once)): fault: action Garbage: can't befall op Create"
		if got != want {
			t.Errorf("panic %q; want %q", got, want)
		}
	}()
	new(fault.Rules).Add(fault.Rule{Op: fault.Create, Action: fault.Garbage})
}

func TestRuleString(t *testing.T) {
	t.Parallel()
	for want, rule := range map[string]fault.Rule{
		"DropReply of Create on /locks/* (once)":      {Op: fault.Create, Path: "/locks/*", Action: fault.DropReply},
		"CutBefore of any request (3 times after 2)":  {Action: fault.CutBefore, Times: 3, Skip: 2},
		"Refuse with Throttled of any request (once)": {Action: fault.Refuse, Code: fault.Throttled},
		"DelayReply by 1s of Sync in session 0x1f (forever)": {
			Session: 31, Op: fault.Sync, Action: fault.DelayReply, Delay: time.Second, Times: fault.Forever,
		},
	} {
		if got := rule.String(); got != want {
			t.Errorf("String() = %q; want %q", got, want)
		}
	}
}

func TestPath(t *testing.T) {
	t.Parallel()
	cases := []struct {
		pattern string
		yes     []string
		no      []string
	}{
		{"/a", []string{"/a"}, []string{"/", "/ab", "/a/b"}},
		{"/a/*", []string{"/a/b", "/a/"}, []string{"/a", "/a/b/c", "/b/b"}},
		{"/a/**", []string{"/a/b", "/a/b/c", "/a/"}, []string{"/a", "/ab/c"}},
		{"/a/lock-*", []string{"/a/lock-", "/a/lock-0000000001"}, []string{"/a/lock", "/a/_c_-lock-1"}},
		{"/a/*-lock-*", []string{"/a/_c_-lock-1", "/a/-lock-"}, []string{"/a/x/y-lock-1", "/a/lock-1"}},
		{"/*/b", []string{"/a/b", "//b"}, []string{"/a/c/b", "/b"}},
		{"**/b", []string{"/b", "/a/c/b"}, []string{"/bb", "b"}},
		{"/**/z", []string{"/a/b/z"}, []string{"/z"}},
		{"/[a]", []string{"/[a]"}, []string{"/a"}},
		{"/*", []string{"/a", "/"}, []string{"/a/b"}},
		{"/****a", []string{"/xa", "/a", "/b/c/a"}, []string{"/b"}},
	}
	for _, c := range cases {
		t.Run(strings.ReplaceAll(c.pattern, "/", "|"), func(t *testing.T) {
			t.Parallel()
			for _, path := range c.yes {
				if !matches(fault.Rule{Path: c.pattern}, fault.Frame{Op: fault.Create, Path: path}) {
					t.Errorf("%q doesn't match %q", c.pattern, path)
				}
			}
			for _, path := range c.no {
				if matches(fault.Rule{Path: c.pattern}, fault.Frame{Op: fault.Create, Path: path}) {
					t.Errorf("%q matches %q", c.pattern, path)
				}
			}
		})
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name  string
		rule  fault.Rule
		frame fault.Frame
		want  bool
	}{
		{"no op means a request", fault.Rule{}, fault.Frame{Op: fault.Sync}, true},
		{"no op means a request of no kind", fault.Rule{}, fault.Frame{Op: fault.Other}, true},
		{"no op doesn't mean a ping", fault.Rule{}, fault.Frame{Op: fault.Ping}, false},
		{"no op doesn't mean a handshake", fault.Rule{}, fault.Frame{Op: fault.Connect}, false},
		{"no op doesn't mean an event", fault.Rule{}, fault.Frame{Op: fault.Event, Path: "/a"}, false},
		{"a ping is meant by name", fault.Rule{Op: fault.Ping}, fault.Frame{Op: fault.Ping}, true},
		{"another op is not meant", fault.Rule{Op: fault.Ping}, fault.Frame{Op: fault.Sync}, false},
		{"the session is meant", fault.Rule{Session: 5}, fault.Frame{Session: 5, Op: fault.Sync}, true},
		{"another session is not meant", fault.Rule{Session: 5}, fault.Frame{Session: 6, Op: fault.Sync}, false},
		{"a path is not on a frame without one", fault.Rule{Path: "/**"}, fault.Frame{Op: fault.SetWatches}, false},
		{"an event is meant by its path", fault.Rule{Op: fault.Event, Path: "/a"}, fault.Frame{Op: fault.Event, Path: "/a"}, true},
		{
			"a multi is meant by the path of a part",
			fault.Rule{Op: fault.Multi, Path: "/a/*"},
			fault.Frame{Op: fault.Multi, Parts: []fault.Part{{fault.Check, "/b"}, {fault.Create, "/a/c"}}},
			true,
		},
		{
			"a multi is not meant by the kind of a part",
			fault.Rule{Op: fault.Create, Path: "/a/*"},
			fault.Frame{Op: fault.Multi, Parts: []fault.Part{{fault.Create, "/a/c"}}},
			false,
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := matches(c.rule, c.frame); got != c.want {
				t.Errorf("%v on %+v: %v; want %v", c.rule, c.frame, got, c.want)
			}
		})
	}
}

// matches reports whether a rule claims a frame.
func matches(rule fault.Rule, frame fault.Frame) bool {
	var rules fault.Rules
	rule.Action = fault.CutBefore
	rules.Add(rule)
	return rules.Match(frame) != nil
}
