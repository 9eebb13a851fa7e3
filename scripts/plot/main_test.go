package main

import (
	"strings"
	"testing"
)

const values = "seconds,goroutines,heap KiB\n0,50,3000\n1,51,3100\n2,50,3050\n"

func TestRun(t *testing.T) {
	var out strings.Builder
	if err := run(strings.NewReader(values), &out, "", "A title"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<svg", ">A title<", ">goroutines<", ">heap KiB<", ">seconds<"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the drawing lacks %q", want)
		}
	}
}

func TestRunRefuses(t *testing.T) {
	for name, c := range map[string]struct{ values, columns, want string }{
		"an unknown column": {values, "threads", `no column "threads"`},
		"no values":         {"seconds,goroutines\n", "", "1 lines"},
		"text for a number": {"seconds,goroutines\n0,many\n", "", "line 2"},
	} {
		t.Run(name, func(t *testing.T) {
			err := run(strings.NewReader(c.values), &strings.Builder{}, c.columns, "")
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}
