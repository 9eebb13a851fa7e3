package main_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/docent-go/docent/internal/must"
	bench "github.com/docent-go/docent/lab/bench"
	"github.com/docent-go/docent/lab/peers"
)

// All curves, at their least sizes, by the contenders that are written in Go.
func TestScale_has_every_curve(t *testing.T) {
	t.Parallel()
	b := bench.Smoke(1, nil, []*bench.Peer{
		bench.InProcess(t.Context(), bench.Wire), bench.InProcess(t.Context(), bench.Docent),
		bench.InProcess(t.Context(), bench.Gozk), bench.Missing(bench.Curator, peers.ErrMissing),
	}, bench.Embedded())
	for _, c := range bench.Curves() {
		limit := 3
		if c.Tree() {
			limit = 100
		}
		results := must.Get(b.Scale(t.Context(), []bench.Curve{c}, limit))(t)
		for _, own := range results[0].Climbs {
			if own.Ended != "" || len(own.Points) == 0 {
				t.Errorf("%s: %s has %d points, ended %q", c.Name(), own.Contender, len(own.Points), own.Ended)
				continue
			}
			last := own.Points[len(own.Points)-1]
			if last.Size != limit || last.P50 <= 0 || last.Requests <= 0 {
				t.Errorf("%s: %s: %+v, want size %d, times and requests", c.Name(), own.Contender, last, limit)
			}
		}
		var text strings.Builder
		results[0].Markdown(&text)
		if !strings.Contains(text.String(), "*exponent*") {
			t.Errorf("%s: no exponent in %s", c.Name(), &text)
		}
	}
}

// A run that is interrupted keeps what it has, and JSON can hold it.
func TestScale_interrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	b := bench.Smoke(1, nil, []*bench.Peer{
		bench.Interrupting(bench.InProcess(t.Context(), bench.Docent), cancel), bench.InProcess(t.Context(), bench.Gozk),
	}, bench.Embedded())
	results, err := b.Scale(ctx, bench.Curves()[:1], 3)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was canceled", err)
	}
	must.Get(json.Marshal(results))(t)
	for _, r := range results {
		for _, c := range r.Climbs {
			for _, p := range c.Points {
				if math.IsNaN(p.P50) {
					t.Errorf("%s has a point without a measurement: %+v", c.Contender, p)
				}
			}
		}
	}
}

func TestSizesEndAtTheLimit(t *testing.T) {
	t.Parallel()
	for _, c := range bench.Curves() {
		sizes := c.Sizes(200)
		if !slices.IsSorted(sizes) || sizes[len(sizes)-1] != 200 || slices.Contains(sizes[:len(sizes)-1], 200) {
			t.Errorf("%s: %v, want an ascent to 200", c.Name(), sizes)
		}
	}
}

// The fit finds the exponent of a power law, and leaves out what is constant below 10.
func TestExponent(t *testing.T) {
	t.Parallel()
	for _, want := range []float64{0, 0.5, 1, 2} {
		var points []bench.Point
		for _, size := range []int{1, 3, 10, 30, 100, 1000} {
			p := bench.Point{Size: size, Heap: 7 * math.Pow(float64(size), want)}
			if size < 10 {
				p.Heap = 1e9
			}
			points = append(points, p)
		}
		if got := bench.Exponent(points, func(p bench.Point) float64 { return p.Heap }); math.Abs(got-want) > 1e-9 {
			t.Errorf("exponent %v, want %v", got, want)
		}
	}
	if got := bench.Exponent(nil, func(bench.Point) float64 { return 1 }); !math.IsNaN(got) {
		t.Errorf("exponent %v of no points, want NaN", got)
	}
}
