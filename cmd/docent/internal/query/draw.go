package query

import (
	"encoding/xml"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/docent-go/docent/cmd/docent/internal/layout"
)

// dot returns the graph in the language of Graphviz. A dashed edge leads to a contender that is ahead in
// the queue and does not hold the lock yet.
func (g *waitGraph) dot() string {
	var b strings.Builder
	b.WriteString("digraph waits {\n\tnode [shape=box];\n")
	for i, n := range g.nodes {
		fmt.Fprintf(&b, "\tn%d [label=%s%s];\n", i, strconv.Quote(n.name), red(n.dead))
	}
	for _, e := range g.edges {
		style := ""
		if !e.direct {
			style = ", style=dashed"
		}
		fmt.Fprintf(&b, "\tn%d -> n%d [label=%s%s%s];\n", e.from, e.to, strconv.Quote(e.lock), style, red(e.dead))
	}
	return b.String() + "}\n"
}

func red(dead bool) string {
	if dead {
		return ", color=red, penwidth=2"
	}
	return ""
}

const (
	svgWidth  = 640
	svgLetter = 20 // letters of a name that fit into a node
	svgHead   = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12" fill="none">
<title>Who waits for whom</title>
<defs><marker id="a" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8z" fill="#555"/></marker></defs>
`
)

// svg returns the graph as a picture, with all texts as titles, too.
func (g *waitGraph) svg() string {
	edges := make([]layout.Edge, len(g.edges))
	for i, e := range g.edges {
		edges[i] = layout.Edge{From: e.from, To: e.to, Label: strconv.Itoa(i)}
	}
	d := layout.Draw(len(g.nodes), edges, svgWidth)
	var b strings.Builder
	fmt.Fprintf(&b, svgHead, d.Width, d.Height)
	for _, r := range d.Routes {
		number, _ := strconv.Atoi(r.Label) // of this graph's edges
		writeRoute(&b, g.edges[number], r)
	}
	for i, n := range g.nodes {
		at, color := d.Nodes[i], "#555"
		if n.dead {
			color = "#c00"
		}
		fmt.Fprintf(&b, `<g><title>%s</title><rect x="%d" y="%d" width="%d" height="%d" rx="4" fill="#fff" stroke="%s"/>`,
			escaped(n.name), at.X, at.Y, layout.NodeWidth, layout.NodeHeight, color)
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle" fill="#000">%s</text></g>`+"\n",
			at.X+layout.NodeWidth/2, at.Y+layout.NodeHeight/2+4, escaped(shortened(n.name)))
	}
	return b.String() + "</svg>\n"
}

func writeRoute(b *strings.Builder, e graphEdge, r layout.Route) {
	color, dash := "#555", ""
	if e.dead {
		color = "#c00"
	}
	if !e.direct {
		dash = ` stroke-dasharray="5 4"`
	}
	c := r.Curve
	fmt.Fprintf(b, `<path d="M%d %dC%d %d %d %d %d %d" stroke="%s"%s marker-end="url(#a)"/>`,
		c[0].X, c[0].Y, c[1].X, c[1].Y, c[2].X, c[2].Y, c[3].X, c[3].Y, color, dash)
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle" fill="#000"><title>%s</title>%s</text>`+"\n",
		r.Text.X, r.Text.Y, escaped(e.lock), escaped(shortened(path.Base(e.lock))))
}

// escaped returns the text for XML.
func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder returns no error
	return b.String()
}

// shortened returns the beginning of a text that is too long for a node.
func shortened(text string) string {
	if letters := []rune(text); len(letters) > svgLetter {
		return string(letters[:svgLetter-1]) + "…"
	}
	return text
}
