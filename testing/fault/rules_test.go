package fault_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/testing/fault"
)

func create(path string) fault.Frame { return fault.Frame{Op: fault.Create, Path: path} }

func isHit(h *fault.Handle) bool {
	select {
	case <-h.Hit():
		return true
	default:
		return false
	}
}

func TestARuleHitsOnceUnlessItSaysOtherwise(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name        string
		times, skip int
		want        string // of six frames: x hit, . passed
	}{
		{"by default", 0, 0, "x....."},
		{"once", 1, 0, "x....."},
		{"three times", 3, 0, "xxx..."},
		{"for ever", fault.Forever, 0, "xxxxxx"},
		{"once after two", 0, 2, "..x..."},
		{"for ever after four", fault.Forever, 4, "....xx"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var rules fault.Rules
			h := rules.Add(fault.Rule{Action: fault.DropReply, Times: c.times, Skip: c.skip})
			got, hits := "", 0
			for range len(c.want) {
				s := rules.Match(create("/a"))
				if s == nil {
					got += "."
					continue
				}
				got += "x"
				if isHit(h) != (hits > 0) {
					t.Error("a claim counts as a hit before it has landed")
				}
				s.Commit()
				s.Commit() // counts once
				hits++
				if h.Hits() != hits || !isHit(h) {
					t.Errorf("Hits() = %d, hit %v; want %d", h.Hits(), isHit(h), hits)
				}
			}
			if got != c.want {
				t.Errorf("hits %q; want %q", got, c.want)
			}
		})
	}
}

func TestTheFirstRuleWins(t *testing.T) {
	t.Parallel()
	var rules fault.Rules
	rules.Add(fault.Rule{Path: "/a", Action: fault.CutBefore})
	rules.Add(fault.Rule{Path: "/*", Action: fault.DropReply})
	want := []fault.Action{fault.CutBefore, fault.DropReply}
	for _, action := range want {
		if s := rules.Match(create("/a")); s == nil || s.Action() != action {
			t.Fatalf("claim %v; want %v", s, action)
		}
	}
	if s := rules.Match(create("/a")); s != nil {
		t.Errorf("claim of %v; want none left", s.Action())
	}
}

func TestPassLeavesTheFrameToOthers(t *testing.T) {
	t.Parallel()
	var rules fault.Rules
	seen := rules.Add(fault.Rule{Action: fault.Pass, Times: fault.Forever})
	rules.Add(fault.Rule{Action: fault.CutBefore})
	if s := rules.Match(create("/a")); s == nil || s.Action() != fault.CutBefore {
		t.Errorf("claim %v; want that of CutBefore", s)
	}
	rules.Match(create("/b"))
	if seen.Hits() != 2 || !isHit(seen) {
		t.Errorf("Hits() = %d; want 2", seen.Hits())
	}
}

func TestAbandonGivesTheClaimBack(t *testing.T) {
	t.Parallel()
	var rules fault.Rules
	h := rules.Add(fault.Rule{Action: fault.DropReply})
	s := rules.Match(create("/a"))
	s.Cancel()
	s.Commit() // too late
	if h.Hits() != 0 || isHit(h) {
		t.Errorf("Hits() = %d of an abandoned claim; want 0", h.Hits())
	}
	again := rules.Match(create("/a"))
	if again == nil {
		t.Fatal("the claim did not come back")
	}
	again.Commit()
	again.Cancel() // too late
	s.Cancel()     // a second time
	if rules.Match(create("/a")) != nil {
		t.Error("a claim came back twice")
	}
	(*fault.Injection)(nil).Cancel()
}

func TestAClaimComesBackWhateverHappenedMeanwhile(t *testing.T) {
	t.Parallel()
	var rules fault.Rules
	forever := rules.Add(fault.Rule{Op: fault.Sync, Action: fault.DropReply, Times: fault.Forever})
	once := rules.Add(fault.Rule{Op: fault.Create, Action: fault.DropReply})
	other := rules.Add(fault.Rule{Op: fault.Delete, Action: fault.DropReply})

	claims := []*fault.Injection{rules.Match(fault.Frame{Op: fault.Sync}), rules.Match(create("/a"))}
	rules.Match(fault.Frame{Op: fault.Delete}).Commit()
	for _, s := range claims {
		s.Cancel()
	}
	for _, op := range []fault.Op{fault.Sync, fault.Create, fault.Sync} {
		s := rules.Match(fault.Frame{Op: op})
		if s == nil {
			t.Fatalf("the rule on %v claims no frame any more", op)
		}
		s.Commit()
	}
	if forever.Hits() != 2 || once.Hits() != 1 || other.Hits() != 1 {
		t.Errorf("hits %d, %d, %d; want 2, 1, 1", forever.Hits(), once.Hits(), other.Hits())
	}
}

func TestRemoveEndsARule(t *testing.T) {
	t.Parallel()
	var rules fault.Rules
	h := rules.Add(fault.Rule{Action: fault.HoldReply, Times: 3})
	s := rules.Match(create("/a"))
	h.Remove()
	h.Remove()
	if rules.Match(create("/a")) != nil {
		t.Error("a removed rule has claimed a frame")
	}
	s.Commit()
	if h.Hits() != 1 {
		t.Errorf("Hits() = %d; want 1, the frame was claimed before", h.Hits())
	}
	other := rules.Add(fault.Rule{Action: fault.HoldReply})
	s = rules.Match(create("/a"))
	other.Remove()
	s.Cancel()
	if rules.Match(create("/a")) != nil {
		t.Error("a removed rule got its claim back")
	}
}

func TestWait(t *testing.T) {
	t.Parallel()
	const hour = time.Hour
	type hold struct {
		*fault.Handle
		rules  *fault.Rules
		cancel context.CancelFunc
	}
	release := func(h hold) { h.Release() }
	clearAll := func(h hold) { h.rules.Clear() }
	cases := []struct {
		name  string
		rule  fault.Rule
		after time.Duration // that the wait ends; 0 is at once
		err   error
		do    func(h hold) // after a minute
	}{
		{"a cut doesn't wait", fault.Rule{Action: fault.CutBefore}, 0, nil, nil},
		{"a delay is counted from the arrival", fault.Rule{Action: fault.DelayReply, Delay: hour}, hour - time.Second, nil, nil},
		{"a delay ends with Release", fault.Rule{Action: fault.DelayRequest, Delay: hour}, time.Minute, nil, func(h hold) { h.Release(); h.Release() }},
		{"a delay ends with Clear", fault.Rule{Action: fault.DelayRequest, Delay: hour}, time.Minute, nil, clearAll},
		{"a hold ends with Release", fault.Rule{Action: fault.HoldReply}, time.Minute, nil, release},
		{"half an answer is a hold", fault.Rule{Op: fault.Connect, Action: fault.HalfAnswer}, time.Minute, nil, release},
		{"a hold ends with Clear", fault.Rule{Action: fault.HoldRequest}, time.Minute, nil, clearAll},
		{"a hold of a removed rule ends with Clear", fault.Rule{Action: fault.HoldRequest}, 2 * time.Minute, nil, func(h hold) { h.Remove(); <-time.After(time.Minute); h.rules.Clear() }},
		{"a hold ends with the context", fault.Rule{Action: fault.HoldReply}, time.Minute, context.Canceled, func(h hold) { h.cancel() }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var rules fault.Rules
				h := rules.Add(c.rule)
				s := rules.Match(fault.Frame{Op: max(c.rule.Op, fault.Create)})
				s.Commit()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				start := time.Now()
				if c.do != nil {
					time.AfterFunc(time.Minute, func() { c.do(hold{h, &rules, cancel}) })
				}
				err := s.Wait(ctx, start.Add(-time.Second))
				if !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
					t.Errorf("Wait() = %v; want %v", err, c.err)
				}
				if took := time.Since(start); took != c.after {
					t.Errorf("Wait() took %v; want %v", took, c.after)
				}
			})
		})
	}
}

func TestReleaseEndsARule(t *testing.T) {
	t.Parallel()
	var rules fault.Rules
	h := rules.Add(fault.Rule{Action: fault.HoldReply, Times: fault.Forever})
	h.Release()
	if rules.Match(create("/a")) != nil {
		t.Error("a released rule has claimed a frame")
	}
}

func TestConcurrentMatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const times = 50
		var rules fault.Rules
		h := rules.Add(fault.Rule{Action: fault.DropReply, Times: times})
		for i := range 8 {
			go func() {
				for range times {
					s := rules.Match(create("/a"))
					if i%2 == 0 {
						s.Cancel()
					} else if s != nil {
						s.Commit()
					}
				}
			}()
		}
		synctest.Wait()
		for s := rules.Match(create("/a")); s != nil; s = rules.Match(create("/a")) {
			s.Commit()
		}
		if h.Hits() != times {
			t.Errorf("Hits() = %d; want %d: no claim lost, none made twice", h.Hits(), times)
		}
	})
}
