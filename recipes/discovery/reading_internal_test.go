package discovery

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/docent-go/docent/framework"
)

// A znode that is no instance is reported once for each of its states, by whatever call reads it, however
// many there are. Of those that are gone nothing is kept.
func TestAStateIsReportedOnce(t *testing.T) {
	t.Parallel()
	var reports []string
	r := &reader[string]{report: func(path string, err error) { reports = append(reports, fmt.Sprint(path, " ", err)) }}
	errBad := errors.New("bad")
	for _, mzxid := range []int64{1, 1, 3, 3} {
		r.refuse("/s", []refusal{{"/s/x", mzxid, errBad}, {"/s/y", 1, errBad}})
		r.refuse("/t", []refusal{{"/t/x", 1, errBad}})
	}
	if want := []string{"/s/x bad", "/s/y bad", "/t/x bad", "/s/x bad"}; !slices.Equal(reports, want) {
		t.Errorf("reports %q, want %q", reports, want)
	}
	reports = nil
	for _, err := range []error{errBad, errBad, framework.ErrTooLarge, framework.ErrNoAuth} { // after a restore, and without a Stat
		r.refuse("/s", []refusal{{"/s/x", 3, err}})
		r.refuse("/t", []refusal{{"/t/x", 0, err}})
	}
	if len(reports) != 2+3 {
		t.Errorf("reports %q, want each other error of a znode with one mzxid, or none", reports)
	}
	const many = 10_001
	all := make([]refusal, many)
	for i := range all {
		all[i] = refusal{fmt.Sprint("/many/", i), 1, errBad}
	}
	reports = nil
	for range 5 {
		r.refuse("/many", all)
	}
	if len(reports) != many {
		t.Errorf("%d reports of %d states", len(reports), many)
	}
	for _, dir := range []string{"/many", "/s", "/t"} {
		r.refuse(dir, nil)
	}
	if len(r.reported) > 0 {
		t.Errorf("%d directories are remembered", len(r.reported))
	}
}
