package tap_test

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/docent-go/docent/framework/internal/tap"
)

func TestStrings(t *testing.T) {
	t.Parallel()
	list := func(n uint32, texts ...string) []byte {
		b := binary.BigEndian.AppendUint32(nil, n)
		for _, s := range texts {
			b = tap.AppendString(b, s)
		}
		return b
	}
	for name, tc := range map[string]struct {
		body     []byte
		perEntry int
		want     []string
		ok       bool
	}{
		"none":                  {list(0), 1, nil, true},
		"null":                  {list(1<<32 - 1), 1, nil, true},
		"two":                   {list(2, "a", ""), 1, []string{"a", ""}, true},
		"pairs":                 {list(1, "a", "b"), 2, []string{"a", "b"}, true},
		"half a pair":           {list(1, "a"), 2, nil, false},
		"fewer than announced":  {list(2, "a"), 1, nil, false},
		"more than announced":   {list(1, "a", "b"), 1, nil, false},
		"a count of 2^31-1":     {list(1<<31-1, "a"), 1, nil, false},
		"cut short":             {list(1, "abc")[:8], 1, nil, false},
		"nothing":               {nil, 1, nil, false},
		"a string of length -1": {list(1, "")[:4:4], 1, nil, false},
	} {
		got, ok := tap.Strings(tc.body, tc.perEntry)
		if ok != tc.ok || ok && !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q, %v, want %q, %v", name, got, ok, tc.want, tc.ok)
		}
	}
}
