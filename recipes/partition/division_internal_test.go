package partition

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
)

func names(prefix string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprint(prefix, i)
	}
	return all
}

// owners returns the member of each key.
func owners(shares map[string][]string) map[string]string {
	of := make(map[string]string)
	for member, keys := range shares {
		for _, key := range keys {
			of[key] = member
		}
	}
	return of
}

func TestSharesDifferByOneAtMost(t *testing.T) {
	t.Parallel()
	for _, keys := range []int{1, 2, 10, 64, 1000} {
		for _, members := range []int{1, 2, 3, 7, 30} {
			all := names("member-", members)
			shares := divide(names("key-", keys), all)
			least, most, sum := keys, 0, 0
			for _, m := range all {
				n := len(shares[m])
				least, most, sum = min(least, n), max(most, n), sum+n
			}
			if most-least > 1 || sum != keys || len(owners(shares)) != keys {
				t.Errorf("%d keys for %d members: shares from %d to %d, %d in all", keys, members, least, most, sum)
			}
		}
	}
	if shares := divide(names("key-", 3), nil); len(shares) != 0 {
		t.Errorf("keys for no member: %v", shares)
	}
}

// The keys of the member move, and of the others one for each member, or half as many as it had.
func TestOneThatLeavesMovesLittleMoreThanItsOwn(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{10, 3}, {64, 5}, {100, 10}, {1000, 10}, {500, 50}} {
		keys, members := names("key-", size[0]), names("member-", size[1])
		before := owners(divide(keys, members))
		for i := 0; i < len(members); i += 1 + len(members)/6 {
			leaver := members[i]
			after := owners(divide(keys, slices.Delete(slices.Clone(members), i, i+1)))
			own, others := 0, 0
			for key, member := range before {
				switch {
				case member == leaver:
					own++
				case after[key] != member:
					others++
				}
			}
			if bound := max(len(members)-1, own/2); others > bound {
				t.Errorf("%d keys of %d members: %s leaves with %d, and %d others move; want %d at most",
					len(keys), len(members), leaver, own, others, bound)
			}
		}
	}
}

// All members have to compute the same, whatever the order in which they know keys and members.
func TestTheDivisionDependsOnTheSetsAlone(t *testing.T) {
	t.Parallel()
	keys, members := names("key-", 50), names("member-", 7)
	want := owners(divide(keys, members))
	slices.Reverse(keys)
	slices.Reverse(members)
	if got := owners(divide(keys, members)); !maps.Equal(got, want) {
		t.Errorf("%v in reverse order, want %v", got, want)
	}
}

// divideAll is divide as its comment defines it: it looks at all pairs, the highest score first.
func divideAll(keys, members []string) map[string][]string {
	d := newDivision(keys, members)
	for _, p := range d.pairs(0, math.MaxUint64) {
		d.give(p)
	}
	return d.shares
}

// What divide does not look at would change nothing.
func TestADivisionByFewPairsIsThatByAll(t *testing.T) {
	t.Parallel()
	for keys := 1; keys < 300; keys += 1 + keys/5 {
		for members := 1; members < 120; members += 1 + members/4 {
			k, m := names("key-", keys), names("member-", members)
			if got, want := owners(divide(k, m)), owners(divideAll(k, m)); !maps.Equal(got, want) {
				t.Errorf("%d keys, %d members: %v, want %v", keys, members, got, want)
			}
		}
	}
}
