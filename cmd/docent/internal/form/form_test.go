package form_test

import (
	"strings"
	"testing"

	"github.com/docent-go/docent/cmd/docent/internal/form/formtest"
)

// TestSchema: the check of the other packages' tests finds what differs from the schema.
func TestSchema(t *testing.T) {
	t.Parallel()
	const event = `{"schema":"docent/v1","event":"live","at":"2026-03-01T14:06:23.120Z","path":"/locks"}`
	for name, test := range map[string]struct{ old, new, want string }{
		"nothing":         {"", "", ""},
		"another field":   {`"path"`, `"more":1,"path"`, `the schema has no "more"`},
		"a missing field": {`,"path":"/locks"`, ``, `no "path"`},
		"another word":    {`live`, `lives`, `"lives" is none of`},
		"another version": {`v1`, `v2`, `"docent/v2", want "docent/v1"`},
		"no time":         {`2026-03-01T`, `2026-03-01 `, `cannot parse`},
		"another type":    {`"/locks"`, `7`, `7 is a integer, and must be [string]`},
		"no JSON":         {`{`, `[`, `invalid character`},
		"a wrong session": {`"path"`, `"contender":{"session":"10"},"path"`, `does not match ^0x`},
	} {
		faults := strings.Join(formtest.Faults(t, "event", strings.Replace(event, test.old, test.new, 1)), "; ")
		if !strings.Contains(faults, test.want) || (faults == "") != (test.want == "") {
			t.Errorf("%s: faults %q, want %q", name, faults, test.want)
		}
	}
}
