package discovery

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

// A znode that is no instance is reported once for each of its states, by whatever call reads it.
func TestAStateIsReportedOnce(t *testing.T) {
	t.Parallel()
	var reports []string
	r := &reader[string]{report: func(path string, err error) { reports = append(reports, fmt.Sprint(path, " ", err)) }}
	errBad := errors.New("bad")
	for _, mzxid := range []int64{1, 1, 3, 3} {
		r.refuse("/x", mzxid, errBad)
		r.refuse("/y", 1, errBad)
	}
	if want := []string{"/x bad", "/y bad", "/x bad"}; !slices.Equal(reports, want) {
		t.Errorf("reports %q, want %q", reports, want)
	}
	for i := range maxReported + 1 {
		r.refuse(fmt.Sprint("/", i), 1, errBad)
	}
	if len(r.reported) > maxReported {
		t.Errorf("%d znodes are remembered", len(r.reported))
	}
}
