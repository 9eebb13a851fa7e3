package main

// handOff draws the hand-off of a mutex from its holder to the successor.
func handOff() string {
	c := newCanvas(860, 272, "A release: the notification grants the lock to the first waiter, and the second prepares")
	type party struct {
		x    int
		name string
		node string
	}
	a, z := party{110, "A, the holder", "…-lock-0000000007"}, party{330, "ZooKeeper", "/locks/report"}
	b, d := party{540, "B, first waiter", "…-lock-0000000008"}, party{750, "C, second", "…-lock-0000000009"}
	for _, p := range []party{a, z, b, d} {
		c.text(p.x, 28, look{anchor: "middle", bold: true}, p.name)
		c.text(p.x, 46, look{anchor: "middle", mono: true, fill: faint}, p.node)
		c.line(p.x, 58, p.x, 250, faint, true)
	}
	c.box(a.x-6, 62, 12, 40, green)
	c.arrow(a.x+8, 102, z.x-4, 112)
	c.text((a.x+z.x)/2, 96, look{anchor: "middle"}, "delete 7")
	c.arrow(z.x, 126, a.x+8, 140)
	c.text(a.x+16, 158, look{small: true, fill: faint}, "Release returns")
	c.arrow(z.x+4, 126, b.x-8, 142)
	c.text((z.x+b.x)/2, 124, look{anchor: "middle"}, "7 is gone")
	c.box(b.x-6, 142, 12, 100, green)
	c.text(b.x+14, 190, look{bold: true}, "B holds the lock")
	c.arrow(z.x+4, 132, d.x-4, 166)
	c.text(d.x, 190, look{anchor: "middle", small: true, fill: faint, halo: true}, "records that")
	c.text(d.x, 206, look{anchor: "middle", small: true, fill: faint, halo: true}, "only B is ahead")
	return c.done()
}
