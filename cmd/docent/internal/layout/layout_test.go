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
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
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
		for i, ring := range d.Ring {
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
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" fill=\"none\" stroke=\"gray\">\n", d.Width, d.Height)
	for i, at := range d.Nodes {
		fmt.Fprintf(&b, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"%d\"/>\n",
			at.X, at.Y, layout.NodeWidth, layout.NodeHeight, map[bool]int{true: 20, false: 4}[d.Ring[i]])
	}
	for _, r := range d.Routes {
		c := r.Curve
		fmt.Fprintf(&b, "<path d=\"M%d %dC%d %d %d %d %d %d\"/><text x=\"%d\" y=\"%d\">%s</text>\n",
			c[0].X, c[0].Y, c[1].X, c[1].Y, c[2].X, c[2].Y, c[3].X, c[3].Y, r.Text.X, r.Text.Y, r.Label)
	}
	return b.String() + "</svg>\n"
}
