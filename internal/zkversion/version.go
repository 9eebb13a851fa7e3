// Package zkversion is the one table of what differs between versions of ZooKeeper, as far as a client
// or a test can see it: behaviors, operations and known faults, each with its source.
//
// The embedded server of testing/zkserver follows the table, the differential tests compare the
// embedded server with the real ones, and what docent doctor says about servers' faults is read
// from here.
package zkversion

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
)

// A Version is a version of ZooKeeper.
type Version struct {
	Major, Minor, Patch int
	// Patched says that it has the distributor's fix for CVE-2024-23944, as Debian's 3.8.0 has
	// from 3.8.0-11+deb12u2 on.
	Patched bool
}

// Debian is the version of Debian 12's package.
var Debian = Version{3, 8, 0, true} //nolint:gochecknoglobals // a constant

var form = regexp.MustCompile(`^v?(\d+)\.(\d+)(?:\.(\d+))?([-+].*)?$`)

// debianFix is the first revision of Debian's package of 3.8.0 that filters events.
var debianFix = regexp.MustCompile(`deb12u([2-9]|\d\d)`)

// Parse returns the version that a text names: "3.8.4", "3.9", what the four-letter word srvr says,
// such as "3.9.3-c26634f34490bb0ea7a09cc51e05ede3b4e320ee", or the version of a Debian package.
func Parse(text string) (Version, error) {
	m := form.FindStringSubmatch(text)
	if m == nil {
		return Version{}, fmt.Errorf("version %q: must be numbers as in 3.8.4", text)
	}
	v := Version{Patched: debianFix.MatchString(m[4])}
	for i, part := range []*int{&v.Major, &v.Minor, &v.Patch} {
		if m[i+1] == "" {
			continue
		}
		n, err := strconv.Atoi(m[i+1])
		if err != nil {
			return Version{}, fmt.Errorf("version %q: %w", text, err)
		}
		*part = n
	}
	return v, nil
}

// Must is Parse for a text that is known to be valid.
func Must(text string) Version {
	v, err := Parse(text)
	if err != nil {
		panic(err)
	}
	return v
}

// String returns the version, as Parse takes it.
func (v Version) String() string {
	text := fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch)
	if v.Patched {
		text += "+deb12u2"
	}
	return text
}

// Compare orders versions. A distributor's fixes do not count.
func (v Version) Compare(w Version) int {
	return cmp.Or(cmp.Compare(v.Major, w.Major), cmp.Compare(v.Minor, w.Minor), cmp.Compare(v.Patch, w.Patch))
}

// A since says with which releases something began: one for each branch that got it. Every later
// branch has it from its first release on.
type since []string

// includes reports whether v is one of the releases, or a later one.
func (s since) includes(v Version) bool {
	return slices.ContainsFunc(s, func(text string) bool {
		first := Must(text)
		return v.Compare(first) >= 0 && v.Major == first.Major && v.Minor == first.Minor
	}) || s.passed(v)
}

// passed reports whether v is of a later branch than all of the releases.
func (s since) passed(v Version) bool {
	return len(s) > 0 && !slices.ContainsFunc(s, func(text string) bool {
		last := Must(text)
		return cmp.Or(cmp.Compare(v.Major, last.Major), cmp.Compare(v.Minor, last.Minor)) <= 0
	})
}
