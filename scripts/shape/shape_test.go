package main

import (
	"slices"
	"strings"
	"testing"
)

func TestMeasure(t *testing.T) {
	s, err := measure("ring", "testdata/ring")
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct{ got, want int }{
		"files":                  {len(s.files), 3},
		"lines of all files":     {sum(s.files), 26},
		"functions":              {len(s.functions), 3},
		"longest function":       {quantile(s.functions, 1), 6},
		"cyclomatic maximum":     {quantile(s.branches, 1), 3},
		"exports":                {s.exports, 2},
		"exported methods":       {s.methods, 1},
		"documented":             {s.documented, 2},
		"lines with comments":    {s.comments, 3},
		"most fields":            {s.fields, 2},
		"uses between files":     {s.arrows, 3}, // a uses b, b uses c, c uses a
		"uses that run backward": {s.back, 1},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %d, want %d", what, c.got, c.want)
		}
	}
}

func TestBackward(t *testing.T) {
	// 0 uses 1, 1 uses 2, 2 uses 0, and 3 uses all: the ring costs one arrow, whatever the order.
	graph := [][]bool{{false, true, false, false}, {false, false, true, false}, {true, false, false, false}, {true, true, true, false}}
	if got := backward(graph); got != 1 {
		t.Errorf("got %d arrows against the best order, want 1", got)
	}
}

func TestBackwardSearchesFromSeveralOrders(t *testing.T) {
	// From the given order, no move of one file gains anything, and two arrows run against it.
	// One arrow, from 1 to 2, closes both rings.
	graph := [][]bool{{1: true, 3: false}, {2: true, 3: false}, {1: true, 3: true}, {0: true, 3: false}}
	if got := backward(graph); got != 1 {
		t.Errorf("got %d arrows against the best order, want 1", got)
	}
}

func TestMove(t *testing.T) {
	for _, c := range []struct {
		from, to int
		want     []int
	}{{0, 3, []int{1, 2, 3, 0}}, {3, 0, []int{3, 0, 1, 2}}, {1, 2, []int{0, 2, 1, 3}}, {2, 2, []int{0, 1, 2, 3}}} {
		order := []int{0, 1, 2, 3}
		move(order, c.from, c.to)
		if !slices.Equal(order, c.want) {
			t.Errorf("move(%d, %d): got %v, want %v", c.from, c.to, order, c.want)
		}
	}
}

func TestRender(t *testing.T) {
	var out strings.Builder
	if err := render(&out, []shape{{name: "x", files: []int{10, 30}, exports: 4, documented: 1, arrows: 3, back: 1}}); err != nil {
		t.Fatal(err)
	}
	if want := "| x | 2 (40) | 30/30/30 |"; !strings.Contains(out.String(), want) {
		t.Errorf("got %q, want it to contain %q", out.String(), want)
	}
	if want := "| 4 (+0) | 25 % |"; !strings.Contains(out.String(), want) {
		t.Errorf("got %q, want it to contain %q", out.String(), want)
	}
}
