package main

import (
	"strings"
	"testing"
	"time"
)

func TestMutantsOfEveryKindAreMade(t *testing.T) {
	t.Parallel()
	const source = `package p

func f(a, b int) bool {
	if a < b && a > 0 {
		a++
		println(a)
		return true
	}
	b = a + b
	return false
}
`
	found, err := mutate("p.go", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, m := range found {
		got[m.what] = string(m.source)
	}
	for what, want := range map[string]string{
		"condition negated: a < b && a > 0": "if !(a < b && a > 0) {",
		"< becomes <=":                      "if a <= b &&",
		"> becomes >=":                      "a >= 0 {",
		"&& becomes ||":                     "a < b || a > 0",
		"++ becomes --":                     "\t\ta--\n",
		"left out: println(a)":              "\t\ta++\n\t\t\n\t\treturn true",
		"left out: b = a + b":               "\t}\n\t\n\treturn false",
		"+ becomes -":                       "b = a - b",
		"true becomes false":                "return false\n\t}",
		"false becomes true":                "return true\n}",
	} {
		if !strings.Contains(got[what], want) {
			t.Errorf("%s: want %q in\n%s", what, want, got[what])
		}
		delete(got, what)
	}
	if len(got) > 0 {
		t.Errorf("and %v", got)
	}
	if _, err := mutate("p.go", []byte("no package")); err == nil {
		t.Error("what is no Go is taken for it")
	}
}

func TestAMutantIsTriedAndNothingIsLeftBehind(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		source string
		want   verdict
	}{
		"one that the tests do not see survives": {"package main\n\nfunc main() { println() }\n", survived},
		"one that does not compile is told":      {"package main\n\nfunc main() { nothing() }\n", invalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := mutant{file: "testdata/victim/main.go", source: []byte(tt.source)}
			got, err := try(m, time.Minute, []string{"-run", "^$", "./testdata/victim"})
			if err != nil || got != tt.want {
				t.Errorf("%v, %v, want %v", got, err, tt.want)
			}
		})
	}
	if _, err := run([]string{"testdata/victim/sum.go"}, 1, 1, time.Minute, []string{"./testdata/nothing"}); err == nil {
		t.Error("tests that fail with nothing broken are taken for good")
	}
	m := mutant{file: "testdata/victim/sum.go", source: []byte("package main\n\nfunc sum(a, b int) int { return a - b }\n")}
	if got, err := try(m, time.Minute, []string{"./testdata/victim"}); err != nil || got != killed {
		t.Errorf("one that a test sees: %v, %v, want it killed", got, err)
	}
}
