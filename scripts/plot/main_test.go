package main

import (
	"regexp"
	"strings"
	"testing"
)

const (
	values = "seconds,goroutines,heap KiB\n0,50,3000\n1,51,3100\n2,50,3050\n"
	across = "waiters,contender,setting,time\n1,a,near,50\n10,a,near,60\n1,a,far,70\n10,b,far,80\n"
	curves = "waiters,contender,time\n1,a,50\n10,a,0\n100,a,70\n1,b,80\n10,b,90\n"
)

func TestRun(t *testing.T) {
	for name, c := range map[string]struct {
		drawing drawing
		values  string
		want    []string
	}{
		"a panel for each column":   {drawing{title: "A title"}, values, []string{"<svg", ">A title<", ">goroutines<", ">heap KiB<", ">seconds<"}},
		"a line for each value":     {drawing{by: "contender"}, curves, []string{">a<", ">b<", ">time<", ">waiters<"}},
		"panels next to each other": {drawing{by: "contender", across: "setting", title: "A title"}, across, []string{">A title: near<", ">A title: far<"}},
		"some rows":                 {drawing{by: "contender", across: "setting", where: wanted{"setting": {"far"}}}, across, []string{">far<", ">b<"}},
		"logarithmic axes, and a 0": {drawing{by: "contender", log: true, columns: "time"}, curves, []string{">a<", ">b<", ">100<"}},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			if err := c.drawing.run(strings.NewReader(c.values), &out); err != nil {
				t.Fatal(err)
			}
			for _, want := range c.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("the drawing lacks %q", want)
				}
			}
		})
	}
}

// Long names are below each other: the page is as wide as two panels.
func TestLongNamesDoNotOverlap(t *testing.T) {
	const long = "an ensemble with a round trip of 20 ms and with jitter and with disks"
	drawnAt := regexp.MustCompile(`(?s)<text x="([0-9.]+)"[^>]*>` + long)
	var out strings.Builder
	values := "waiters,setting,time\n1," + long + " 1,50\n10," + long + " 1,60\n1," + long + " 2,70\n10," + long + " 2,80\n"
	if err := (drawing{by: "setting"}).run(strings.NewReader(values), &out); err != nil {
		t.Fatal(err)
	}
	at := drawnAt.FindAllStringSubmatch(out.String(), -1)
	if len(at) != 2 || at[0][1] != at[1][1] {
		t.Errorf("the names begin at %q, want two below each other", at)
	}
}

func TestRunRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		drawing      drawing
		values, want string
	}{
		"an unknown column":        {drawing{columns: "threads"}, values, `no column "threads"`},
		"an unknown column of by":  {drawing{by: "threads"}, values, `no column "threads"`},
		"an unknown column across": {drawing{across: "threads"}, values, `no column "threads"`},
		"an unknown column where":  {drawing{where: wanted{"threads": {"1"}}}, values, `no column "threads"`},
		"no row":                   {drawing{where: wanted{"seconds": {"7"}}}, values, `no row has ["7"]`},
		"no values":                {drawing{}, "seconds,goroutines\n", "1 lines"},
		"text for a number":        {drawing{}, "seconds,goroutines\n0,many\n", "line 2"},
		"no value for a logarithm": {drawing{log: true}, "seconds,goroutines\n0,1\n", "no value"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.drawing.run(strings.NewReader(c.values), &strings.Builder{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}
