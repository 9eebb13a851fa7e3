package main

import (
	"fmt"
	"html"
	"strings"
)

// The colours, which have to be told apart in grey too.
const (
	ink   = "#1f2933"
	faint = "#8a94a0"
	green = "#b7dfc3" // holds, and may
	red   = "#f2b5ae" // believes that it holds
	blue  = "#bcd7f0" // another client
	grey  = "#e6e9ed"
	alert = "#b3261e"
)

// A canvas is a drawing in the making. Coordinates are pixels.
type canvas struct {
	b    strings.Builder
	w, h int
}

// newCanvas returns a canvas with its own background, so that it is readable on dark pages, and a
// title for screen readers.
func newCanvas(w, h int, title string) *canvas {
	c := &canvas{w: w, h: h}
	c.put(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" font-family="Helvetica, Arial, sans-serif" font-size="13">`, w, h, w, h)
	c.put(`<title>%s</title>`, html.EscapeString(title))
	c.put(`<defs><marker id="arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path d="M0 0L10 5L0 10z" fill="%s"/></marker>`, ink)
	c.put(`<pattern id="clash" width="8" height="8" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="8" height="8" fill="%s"/><rect width="3" height="8" fill="%s"/></pattern></defs>`, red, alert)
	c.put(`<rect width="%d" height="%d" rx="8" fill="#ffffff" stroke="%s"/>`, w, h, grey)
	return c
}

func (c *canvas) put(format string, args ...any) { fmt.Fprintf(&c.b, format+"\n", args...) }

// done returns the drawing.
func (c *canvas) done() string { return c.b.String() + "</svg>\n" }

// A look says how text is set.
type look struct {
	fill   string
	anchor string // start, middle or end
	mono   bool
	bold   bool
	small  bool
	halo   bool // keeps lines behind it away
}

func (c *canvas) text(x, y int, l look, s string) {
	attributes := ""
	if l.mono {
		attributes += ` font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="12"`
	}
	if l.bold {
		attributes += ` font-weight="bold"`
	}
	if l.small {
		attributes += ` font-size="12"`
	}
	if l.halo {
		attributes += ` stroke="#ffffff" stroke-width="5" paint-order="stroke"`
	}
	if l.fill == "" {
		l.fill = ink
	}
	if l.anchor == "" {
		l.anchor = "start"
	}
	c.put(`<text x="%d" y="%d" fill="%s" text-anchor="%s"%s>%s</text>`, x, y, l.fill, l.anchor, attributes, html.EscapeString(s))
}

func (c *canvas) box(x, y, w, h int, fill string) {
	c.put(`<rect x="%d" y="%d" width="%d" height="%d" rx="3" fill="%s" stroke="%s" stroke-width="0.8"/>`, x, y, w, h, fill, ink)
}

func (c *canvas) line(x1, y1, x2, y2 int, stroke string, dashed bool) {
	dash := ""
	if dashed {
		dash = ` stroke-dasharray="4 4"`
	}
	c.put(`<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="%s"%s/>`, x1, y1, x2, y2, stroke, dash)
}

func (c *canvas) arrow(x1, y1, x2, y2 int) {
	c.put(`<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="%s" stroke-width="1.3" marker-end="url(#arrow)"/>`, x1, y1, x2, y2, ink)
}

// curve is an arrow that leaves to the right, and comes back to the right side of something above.
func (c *canvas) curve(x1, y1, x2, y2, bulge int) {
	c.put(`<path d="M%d %d C%d %d %d %d %d %d" fill="none" stroke="%s" stroke-width="1.3" marker-end="url(#arrow)"/>`,
		x1, y1, x1+bulge, y1, x2+bulge, y2, x2, y2, ink)
}
