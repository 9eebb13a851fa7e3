package main

import "strconv"

// A contender is one znode of a queue, as it is drawn.
type contender struct {
	kind    string // of its name
	role    string
	fill    string
	watches int // how many rows up is what it watches, 0 for the holder
}

// queues draws the znodes of a mutex and of a read/write lock, and who watches whom.
func queues() string {
	c := newCanvas(860, 300, "The queues of a Mutex and of an RWMutex: which contender waits for which")
	queue(c, 24, "Mutex  /locks/report", 7, []contender{
		{kind: "lock-", role: "host A holds", fill: green},
		{kind: "lock-", role: "host B waits", fill: grey, watches: 1},
		{kind: "lock-", role: "host A waits", fill: grey, watches: 1},
		{kind: "lock-", role: "a Curator process waits", fill: grey, watches: 1},
	})
	queue(c, 440, "RWMutex  /locks/catalogue", 4, []contender{
		{kind: "__READ__", role: "reads", fill: green},
		{kind: "__READ__", role: "reads", fill: green},
		{kind: "__WRIT__", role: "waits to write", fill: grey, watches: 1},
		{kind: "__READ__", role: "waits to read", fill: grey, watches: 1},
		{kind: "__READ__", role: "waits to read", fill: grey, watches: 2},
	})
	c.text(24, 278, look{small: true, fill: faint}, "An arrow leads to the znode that a waiter waits for: when it is deleted, the waiter has the lock, or another one to wait for.")
	return c.done()
}

func queue(c *canvas, x int, title string, first int, contenders []contender) {
	c.text(x, 34, look{bold: true}, title)
	const height, pitch, width = 28, 40, 330
	for i, each := range contenders {
		y := 52 + i*pitch
		number := "00000000" + strconv.Itoa(100 + first + i)[1:]
		c.box(x, y, width, height, each.fill)
		c.text(x+10, y+19, look{mono: true}, "_c_…-"+each.kind+number)
		c.text(x+width-10, y+19, look{anchor: "end"}, each.role)
		if each.watches > 0 {
			c.curve(x+width, y+height/2-4, x+width+1, y+height/2+4-each.watches*pitch, 26*each.watches)
		}
	}
}
