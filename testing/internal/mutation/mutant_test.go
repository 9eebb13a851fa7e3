package main

import (
	"strings"
	"testing"

	"github.com/docent-go/docent/internal/must"
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
	found := must.Get(mutate("p.go", []byte(source)))(t)
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
