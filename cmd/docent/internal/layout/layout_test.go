package layout_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/docent-go/docent/cmd/docent/internal/layout"
	"github.com/docent-go/docent/internal/must"
)

var update = flag.Bool("update", false, "write the golden files")

// cases are the graphs of the golden files. Edges are "waiter>blocker:label".
var cases = []struct {
	name  string
	nodes int
	edges string
}{
	{"empty", 0, ""},
	{"alone", 1, ""},
	{"queue", 4, "1>0:a 2>1:a 3>2:a"},
	{"crowd", 5, "1>0:s 2>0:s 3>0:s 4>0:s"},
	{"deadlock of two", 2, "0>1:b 1>0:a"},
	{"deadlock of three with waiters behind it", 6, "0>1:b 1>2:c 2>0:a 3>0:a 4>3:a 5>1:b"},
	{"writer behind readers", 5, "3>0:rw 3>1:rw 3>2:rw 4>3:rw"},
	{"past the predecessor", 3, "1>0:s 2>1:s 2>0:s"},
	{"two parts", 5, "1>0:a 3>2:b 4>2:b"},
	{"itself", 1, "0>0:a"},
}

func TestDraw_is_the_same_each_time(t *testing.T) {
	t.Parallel()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := svg(layout.Draw(c.nodes, parse(t, c.edges), 640))
			golden := filepath.Join("testdata", strings.ReplaceAll(c.name, " ", "-")+".svg")
			if *update {
				must.OK(t, os.WriteFile(golden, []byte(got), 0o600))
			}
			want := must.Get(os.ReadFile(golden))(t)
			if got != string(want) {
				t.Errorf("the drawing differs from %s (renew it with -update, and look at it):\n%s", golden, got)
			}
		})
	}
}

// In random graphs no two nodes overlap, and all is inside the drawing. Waiters outside of cycles are
// below their blockers. A node is in a ring exactly if it reaches itself.
func TestDraw_random_graphs(t *testing.T) {
	t.Parallel()
	for seed := range uint64(400) {
		random := rand.New(rand.NewPCG(seed, 1))
		n := 1 + random.IntN(60)
		var edges []layout.Edge
		for range random.IntN(2 * n) {
			edges = append(edges, layout.Edge{From: random.IntN(n), To: random.IntN(n), Label: "l"})
		}
		d := layout.Draw(n, edges, 640)
		checkNodes(t, seed, d)
		reaches := closure(n, edges)
		for i, ring := range rings(d) {
			cycle := false
			for j := range n {
				cycle = cycle || j != i && reaches[i][j] && reaches[j][i]
			}
			if ring != cycle {
				t.Errorf("seed %d: node %d: ring %v, and it is in a cycle: %v", seed, i, ring, cycle)
			}
		}
		for _, r := range d.Routes {
			if r.From == r.To {
				t.Errorf("seed %d: an edge leads from a node to itself", seed)
			}
			if !reaches[r.To][r.From] && d.Nodes[r.From].Y <= d.Nodes[r.To].Y {
				t.Errorf("seed %d: waiter %d is not below its blocker %d", seed, r.From, r.To)
			}
		}
	}
}

// No label is on a node or on another label. In graphs as locks have them, no edge crosses a node.
func TestDraw_prints_nothing_over_another(t *testing.T) {
	t.Parallel()
	var stars, deadlocks []layout.Edge
	for i := range 40 {
		stars = append(stars, layout.Edge{From: 1 + i, To: 0, Label: "a-lock-with-a-name"})
		if i >= 2 {
			deadlocks = append(deadlocks, layout.Edge{From: i, To: i % 2, Label: "lock"}, layout.Edge{From: i, To: max(i-2, 0), Label: "lock"})
		}
	}
	deadlocks = append(deadlocks, layout.Edge{From: 0, To: 1, Label: "first"}, layout.Edge{From: 1, To: 0, Label: "second"})
	for name, c := range map[string]struct {
		nodes int
		edges []layout.Edge
	}{"waiters of one": {41, stars}, "waiters behind a deadlock": {40, deadlocks}} {
		d := layout.Draw(c.nodes, c.edges, 640)
		checkLabels(t, name, d)
		if n := crossings(d); n > 0 && name == "waiters of one" {
			t.Errorf("%s: %d points of edges are on nodes", name, n)
		}
	}
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 2))
		n := 2 + random.IntN(40)
		var edges []layout.Edge
		for i := 1; i < n; i++ {
			edges = append(edges, layout.Edge{From: i, To: random.IntN(i), Label: strings.Repeat("l", 1+random.IntN(30))})
		}
		d := layout.Draw(n, edges, 640)
		checkLabels(t, fmt.Sprint("seed ", seed), d)
		if got := crossings(d); got > 0 {
			t.Errorf("seed %d: %d points of edges are on nodes", seed, got)
		}
	}
}

type rect struct{ x, y, width, height float64 }

func (r rect) meets(o rect) bool {
	return r.x < o.x+o.width && o.x < r.x+r.width && r.y < o.y+o.height && o.y < r.y+r.height
}

func checkLabels(t *testing.T, name string, d layout.Drawing) {
	t.Helper()
	var taken []rect
	for _, at := range d.Nodes {
		taken = append(taken, rect{float64(at.X), float64(at.Y), layout.NodeWidth, layout.NodeHeight})
	}
	labels := 0
	for _, r := range d.Routes {
		if r.Hidden {
			continue
		}
		labels++
		width := 7 * float64(min(len(r.Label), 20))
		own := rect{float64(r.Text.X) - width/2, float64(r.Text.Y) - 6, width, 12}
		for _, other := range taken {
			if own.meets(other) {
				t.Errorf("%s: the label %q at %v is on %v", name, r.Label, r.Text, other)
			}
		}
		taken = append(taken, own)
	}
	if labels == 0 && len(d.Routes) > 0 {
		t.Errorf("%s: no label", name)
	}
}

// crossings returns how many points of edges are on nodes that they do not join.
func crossings(d layout.Drawing) (n int) {
	for _, r := range d.Routes {
		for step := 1; step < 20; step++ {
			at := float64(step) / 20
			u, c := 1-at, r.Curve
			mix := func(p, q, v, w int) float64 {
				return u*u*u*float64(p) + 3*u*u*at*float64(q) + 3*u*at*at*float64(v) + at*at*at*float64(w)
			}
			x, y := mix(c[0].X, c[1].X, c[2].X, c[3].X), mix(c[0].Y, c[1].Y, c[2].Y, c[3].Y)
			for i, node := range d.Nodes {
				in := rect{x, y, 0.1, 0.1}.meets(rect{float64(node.X), float64(node.Y), layout.NodeWidth, layout.NodeHeight})
				if i != r.From && i != r.To && in {
					n++
				}
			}
		}
	}
	return n
}

func checkNodes(t *testing.T, seed uint64, d layout.Drawing) {
	t.Helper()
	for i, a := range d.Nodes {
		if a.X < 0 || a.Y < 0 || a.X+layout.NodeWidth > d.Width || a.Y+layout.NodeHeight > d.Height {
			t.Errorf("seed %d: node %d at %v is outside of %d x %d", seed, i, a, d.Width, d.Height)
		}
		for j, b := range d.Nodes[:i] {
			if max(a.X-b.X, b.X-a.X) < layout.NodeWidth && max(a.Y-b.Y, b.Y-a.Y) < layout.NodeHeight {
				t.Errorf("seed %d: nodes %d at %v and %d at %v overlap", seed, j, b, i, a)
			}
		}
	}
}

// rings returns which nodes are part of a ring: an edge of one joins them.
func rings(d layout.Drawing) []bool {
	ring := make([]bool, len(d.Nodes))
	for _, r := range d.Routes {
		ring[r.From], ring[r.To] = ring[r.From] || r.Ring, ring[r.To] || r.Ring
	}
	return ring
}

// closure returns which nodes reach which.
func closure(n int, edges []layout.Edge) [][]bool {
	reaches := make([][]bool, n)
	for i := range reaches {
		reaches[i] = make([]bool, n)
	}
	for _, e := range edges {
		reaches[e.From][e.To] = true
	}
	for k := range n {
		for i := range n {
			for j := range n {
				reaches[i][j] = reaches[i][j] || reaches[i][k] && reaches[k][j]
			}
		}
	}
	return reaches
}

func parse(t *testing.T, text string) []layout.Edge {
	t.Helper()
	var edges []layout.Edge
	for field := range strings.FieldsSeq(text) {
		var e layout.Edge
		if _, err := fmt.Sscanf(field, "%d>%d:%s", &e.From, &e.To, &e.Label); err != nil {
			t.Fatal(field, err)
		}
		edges = append(edges, e)
	}
	return edges
}

// svg is a plain picture of the drawing, to look at.
func svg(d layout.Drawing) string {
	var b strings.Builder
	ring := rings(d)
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" fill=\"none\" stroke=\"gray\">\n", d.Width, d.Height)
	for i, at := range d.Nodes {
		fmt.Fprintf(&b, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"%d\"/>\n",
			at.X, at.Y, layout.NodeWidth, layout.NodeHeight, map[bool]int{true: 20, false: 4}[ring[i]])
	}
	for _, r := range d.Routes {
		c := r.Curve
		fmt.Fprintf(&b, "<path d=\"M%d %dC%d %d %d %d %d %d\"/><text x=\"%d\" y=\"%d\">%s</text>\n",
			c[0].X, c[0].Y, c[1].X, c[1].Y, c[2].X, c[2].Y, c[3].X, c[3].Y, r.Text.X, r.Text.Y, r.Label)
	}
	return b.String() + "</svg>\n"
}
