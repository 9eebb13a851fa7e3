package query

import (
	"encoding/xml"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/docent-go/docent/cmd/docent/internal/cli"
	"github.com/docent-go/docent/cmd/docent/internal/layout"
	"github.com/docent-go/docent/cmd/docent/internal/waits"
)

// dot returns the graph in the language of Graphviz. A dashed edge leads to a contender that is ahead in
// the queue and does not hold the lock yet.
func dot(g waits.Graph) string {
	var b strings.Builder
	b.WriteString("digraph waits {\n\tnode [shape=box];\n")
	for i, p := range g.Parties {
		fmt.Fprintf(&b, "\tn%d [label=%s%s];\n", i, strconv.Quote(cli.Safe(p.String())), red(p.Mark == waits.Dead))
	}
	for _, e := range g.Edges {
		style := ""
		if !e.Direct {
			style = ", style=dashed"
		}
		fmt.Fprintf(&b, "\tn%d -> n%d [label=%s%s%s];\n", e.From, e.To, strconv.Quote(cli.Safe(e.Lock)), style, red(e.Mark == waits.Dead))
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
	svgLine   = 40 // the height of a picture without waits
	svgLetter = 20 // letters of a name that fit into a node
	svgHead   = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12" fill="none">
<title>Who waits for whom</title>
<defs><marker id="a" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8z" fill="#555"/></marker></defs>
`
)

// svg returns the graph as a picture, with all texts as titles, too.
func svg(g waits.Graph) string {
	var shown []waits.Edge // an edge from a node to itself is left out
	var edges []layout.Edge
	for _, e := range g.Edges {
		if e.From != e.To {
			shown = append(shown, e)
			edges = append(edges, layout.Edge{From: e.From, To: e.To, Label: shortened(path.Base(cli.Safe(e.Lock)))})
		}
	}
	d := layout.Draw(len(g.Parties), edges, svgWidth)
	var b strings.Builder
	if len(g.Parties) == 0 {
		fmt.Fprintf(&b, svgHead, svgWidth, svgLine)
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle" fill="#000">No contender waits.</text></svg>`+"\n", svgWidth/2, svgLine/2)
		return b.String()
	}
	fmt.Fprintf(&b, svgHead, d.Width, d.Height)
	for i, r := range d.Routes {
		writeRoute(&b, shown[i], r)
	}
	for i, p := range g.Parties {
		at, color, name := d.Nodes[i], "#555", cli.Safe(p.String())
		if p.Mark == waits.Dead {
			color = "#c00"
		}
		fmt.Fprintf(&b, `<g><title>%s</title><rect x="%d" y="%d" width="%d" height="%d" rx="4" fill="#fff" stroke="%s"/>`,
			escaped(name), at.X, at.Y, layout.NodeWidth, layout.NodeHeight, color)
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle" fill="#000">%s</text></g>`+"\n",
			at.X+layout.NodeWidth/2, at.Y+layout.NodeHeight/2+4, escaped(shortened(name)))
	}
	return b.String() + "</svg>\n"
}

func writeRoute(b *strings.Builder, e waits.Edge, r layout.Route) {
	color, dash, lock := "#555", "", cli.Safe(e.Lock)
	if e.Mark == waits.Dead {
		color = "#c00"
	}
	if !e.Direct {
		dash = ` stroke-dasharray="5 4"`
	}
	c := r.Curve
	fmt.Fprintf(b, `<path d="M%d %dC%d %d %d %d %d %d" stroke="%s"%s marker-end="url(#a)"/>`,
		c[0].X, c[0].Y, c[1].X, c[1].Y, c[2].X, c[2].Y, c[3].X, c[3].Y, color, dash)
	if r.Hidden {
		return
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle" fill="#000"><title>%s</title>%s</text>`+"\n",
		r.Text.X, r.Text.Y, escaped(lock), escaped(shortened(path.Base(lock))))
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
