package partition

import (
	"maps"
	"slices"
	"testing"
	"time"
)

// settledAt returns peers of which all are settled; the czxid of each is its number.
func settledAt(names []string) peers {
	p := peers{make(ids), make(ids)}
	for i, name := range names {
		p.present[name], p.settled[name] = int64(i+1), int64(i+1)
	}
	return p
}

// ownersOf returns who serves each key by the peers. Each key has one server.
func ownersOf(t *testing.T, keys []string, p peers) map[string]string {
	t.Helper()
	of := make(map[string]string)
	for id := range p.present {
		d := divider{keys: keys}
		for _, key := range d.share(p, id) {
			if of[key] != "" {
				t.Errorf("%s is the key of %s and of %s", key, of[key], id)
			}
			of[key] = id
		}
	}
	if len(of) != len(keys) {
		t.Errorf("%d keys have a member, want all %d", len(of), len(keys))
	}
	return of
}

// Members come and leave, and are not settled. No key moves whose server is there.
func TestOnlyKeysWithoutAServerMoveBeforeTheMembersSettle(t *testing.T) {
	t.Parallel()
	keys, all := names("key-", 400), names("member-", 9)
	p := settledAt(all)
	before := ownersOf(t, keys, p)
	for i := range 4 { // fewer than half
		p.present["new-"+all[i]] = 100
		if now := ownersOf(t, keys, p); !maps.Equal(now, before) {
			t.Errorf("a member that comes moves keys: %v, want %v", now, before)
		}
		if delete(p.present, all[i]); i%2 == 0 {
			p.present[all[i]] = 200 // comes again: another process, or another session
		}
		now := ownersOf(t, keys, p)
		heirs := make(map[string]int)
		for key, server := range before {
			switch {
			case server == all[i]:
				heirs[now[key]]++
			case now[key] != server:
				t.Errorf("%s has left, and %s moves from %s to %s", all[i], key, server, now[key])
			}
		}
		if len(heirs) < 3 || slices.Contains(slices.Collect(maps.Keys(heirs)), all[i]) {
			t.Errorf("the keys of %s go to %v, want several others", all[i], heirs)
		}
		before = now
	}
}

// When half of the settled members are gone, the keys are divided among all at once.
func TestHalfOfTheMembersDoNotServeAllKeysForLong(t *testing.T) {
	t.Parallel()
	keys, all := names("key-", 100), names("member-", 4)
	p := settledAt(all)
	delete(p.present, all[0])
	delete(p.present, all[1])
	p.present["new-0"], p.present["new-1"] = 100, 101
	want := owners(divide(keys, slices.Sorted(maps.Keys(p.present))))
	if got := ownersOf(t, keys, p); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if first := (peers{present: ids{"a": 1}}); !first.halved() {
		t.Error("the first member of all waits")
	}
}

// Each settlement is that of the members with the same keys, and leaves the others as they are.
func TestASettlementIsOfTheMembersWithTheSameKeys(t *testing.T) {
	t.Parallel()
	v := view{
		present: settlement{"old": {"a": 1, "b": 5}, "new": {"c": 3}},
		settled: settlement{"old": {"a": 1, "gone": 2}, "older": {"x": 1}},
	}
	const want = `{"new":{"c":3},"old":{"a":1,"gone":2}}`
	if got := string(unpacked(v.next("new"), maxSettlement)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A member's znode may hold anything. What it inflates to is bounded: there may be thousands.
func TestAMembersDataIsNotInflatedBeyondADigest(t *testing.T) {
	t.Parallel()
	bomb := packed(make([]byte, 8<<20))
	for name, data := range map[string][]byte{"as it is": bomb, "by a client that compresses": packed(bomb)} {
		if got := unpacked(data, maxDigest); len(got) > len(bomb) {
			t.Errorf("%s: %d bytes became %d", name, len(data), len(got))
		}
	}
	digest := digestOf(names("key-", 3))
	if got := unpacked(packed(packed([]byte(digest))), maxDigest); string(got) != digest {
		t.Errorf("a digest is read as %q, want %q", got, digest)
	}
}

// A member that has written waits for its turn again, even if what others settle changes meanwhile, or agrees with it for a
// while: members that see different ones would write at the rate of a round trip.
func TestAMemberThatHasWrittenWaitsWhateverOthersWrite(t *testing.T) {
	t.Parallel()
	now := time.Now()
	retry := now.Add(time.Second)
	for name, next := range map[string]peers{
		"settled":             {present: ids{"a": 1}, settled: ids{"a": 1}},
		"settled by another":  {present: ids{"a": 1, "b": 2}, settled: ids{"c": 3}},
		"others are there":    {present: ids{"a": 1, "d": 4}, settled: ids{"a": 1}},
		"nothing has changed": {present: ids{"a": 1, "b": 2}, settled: ids{"a": 1}},
	} {
		s := settling{peers: peers{present: ids{"a": 1, "b": 2}, settled: ids{"a": 1}}, first: now, last: now, retry: retry}
		s.note(next, now.Add(time.Millisecond))
		if !s.retry.Equal(retry) || s.at(time.Millisecond, true).Before(retry) {
			t.Errorf("%s: the next write is at %v, want none before %v", name, s.at(time.Millisecond, true), retry)
		}
	}
}
