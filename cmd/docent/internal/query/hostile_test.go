package query_test

import (
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

// TestHostileText: names, owners and data that a terminal would obey, very long ones, and invalid
// UTF-8. The locale changes the tree's branches alone.
func TestHostileText(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, env *environment) {
		env.env = nil
		for _, lock := range [][2]string{
			{"/x/a\u2066b\u202ec", metadata("h\r\nERROR", 1, "\x1b]0;title\x07", "p")},
			{"/x/größe 锁", metadata("größe", 1, "锁", "q")},
			{"/x/long" + strings.Repeat("n", 64<<10), metadata("h"+strings.Repeat("o", 64<<10), 1, "", "r")},
			{"/x/invalid", "\xff\xfe\x00"},
			{"/x/large", strings.Repeat("d", 64<<10)},
		} {
			contender(t, env.client, lock[0]+guid+"lock-", lock[1])
		}
		<-time.After(time.Second) // virtual
		for name, args := range map[string][]string{
			"ls":            {"ls", "/x"},
			"ls-json":       {"ls", "/x", "-o", "json"},
			"tree":          {"tree", "/x"},
			"who":           {"who", "/x/a\u2066b\u202ec"},
			"queue":         {"queue", "/x/größe 锁"},
			"queue-invalid": {"queue", "/x/invalid", "--data"},
			"queue-large":   {"queue", "/x/large", "--data"},
			"doctor":        {"doctor", "/x", "--servers=false", "--held-longer", "1ms"},
		} {
			in := map[string]result{}
			for _, locale := range []string{"C", "C.UTF-8"} {
				env.env = []string{"LC_ALL=" + locale}
				in[locale] = env.docent(t, args...)
			}
			if name != "tree" && name != "ls-json" && in["C"].out != in["C.UTF-8"].out {
				t.Errorf("%s: the locale changes\n%s\nto\n%s", name, in["C.UTF-8"].out, in["C"].out)
			}
			for locale, r := range in {
				for _, c := range r.out + r.err {
					if c != '\n' && !unicode.IsGraphic(c) {
						t.Errorf("%s: the output has the character %U", name, c)
					}
				}
				if name != "ls-json" { // it has the whole names
					golden(t, "hostile-"+name+map[string]string{"C": "-c"}[locale], r.out+r.err)
				}
			}
		}
	})
}

// TestLongNames: one lock with a long name does not widen the rows of the others, and -o wide and -o name
// have it whole.
func TestLongNames(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, env *environment) {
		long := "/x/" + strings.Repeat("long", 150)
		contender(t, env.client, "/x/short"+guid+"lock-", metadata("h", 1, "", "p"))
		contender(t, env.client, long+guid+"lock-", metadata("h", 1, strings.Repeat("o", 600), "q"))
		for _, test := range []struct {
			args  []string
			width int  // of the widest row
			whole bool // the long name is whole
		}{
			{[]string{"ls"}, 200, false},
			{[]string{"ls", "-o", "wide"}, 2000, true},
			{[]string{"ls", "-o", "name"}, 2000, true},
			{[]string{"queue", long}, 250, false},
		} {
			r := env.docent(t, test.args...)
			widest := 0
			for line := range strings.Lines(r.out) {
				widest = max(widest, utf8.RuneCountInString(strings.TrimSpace(line)))
			}
			if r.code != 0 || widest > test.width || strings.Contains(r.out, long) != test.whole {
				t.Errorf("%v: exit code %d, %d characters wide, want at most %d; the name is whole: %v\n%s",
					test.args, r.code, widest, test.width, !test.whole, r.out)
			}
			if test.args[0] == "ls" && test.args[len(test.args)-1] != "name" {
				if short := strings.Split(r.out, "\n")[2]; !strings.HasPrefix(short, "/x/short") || !test.whole && len(short) > 200 {
					t.Errorf("%v: the row of the short name has %d bytes: %s", test.args, len(short), short)
				}
			}
		}
	})
}
