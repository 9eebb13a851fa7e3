package main

// The scale of the timeline: session timeouts in pixels, from the last contact of the client with
// the ensemble.
const (
	origin  = 178
	timeout = 330
	ending  = origin + timeout*19/10
)

// leaseClock draws who holds a lock, and who believes it, when the network between a client and the
// ensemble fails at 0 without a word. docent's loss is drawn for a holder whose last heartbeat was
// answered just before, with T = 30 s and the default margin. Curator's moments are those of its
// source: a silent connection is noticed after 2/3 of the timeout, and the timer for LOST, of one
// whole timeout, starts there.
func leaseClock() string {
	c := newCanvas(860, 372, "When a lock counts as lost: docent before the ensemble can expire the session, Curator up to two thirds of a session timeout after it")
	at := func(num, den int) int { return origin + timeout*num/den }
	row := func(y int, who, detail string) {
		c.text(16, y+15, look{bold: true}, who)
		c.text(16, y+31, look{small: true, fill: faint}, detail)
	}
	c.text(16, 26, look{bold: true}, "The network fails silently. Which client holds the lock, and which believes it does?")

	for _, tick := range []struct {
		num, den int
		label    string
	}{{0, 1, "0"}, {2, 3, "2/3 T"}, {1, 1, "T"}, {5, 3, "5/3 T"}} {
		x := at(tick.num, tick.den)
		c.line(x, 60, x, 326, faint, true)
		c.text(x, 52, look{anchor: "middle"}, tick.label)
	}
	c.text(ending, 52, look{anchor: "end", fill: faint}, "time")

	row(72, "ensemble", "decides")
	c.box(origin, 72, timeout, 36, green)
	c.text(origin+10, 94, look{}, "session of the holder exists")
	c.box(at(1, 1), 72, ending-at(1, 1), 36, blue)
	c.text(at(1, 1)+10, 94, look{}, "expired: its znodes are deleted")

	row(132, "successor", "any client")
	c.box(origin, 132, timeout, 36, grey)
	c.text(origin+10, 154, look{}, "waits")
	c.box(at(1, 1), 132, ending-at(1, 1), 36, blue)
	c.text(at(1, 1)+10, 154, look{}, "holds the lock")

	row(192, "docent", "holder")
	lost := at(7, 8)
	c.box(origin, 192, lost-origin, 36, green)
	c.text(origin+10, 214, look{}, "has a lease")
	c.text(lost-6, 214, look{anchor: "end", bold: true}, "Lost is closed")
	c.text(at(1, 1)+10, 214, look{fill: faint}, "has stopped")

	row(252, "Curator", "holder, by default")
	c.box(origin, 252, timeout, 36, green)
	c.text(origin+10, 274, look{}, "holds the lock")
	c.text(at(2, 3)+4, 274, look{small: true}, "SUSPENDED")
	c.box(at(1, 1), 252, at(5, 3)-at(1, 1), 36, "url(#clash)")
	c.text(at(5, 3)+6, 274, look{bold: true}, "LOST")
	c.text((at(1, 1)+at(5, 3))/2, 306, look{anchor: "middle", bold: true, fill: alert}, "two holders, for up to 2/3 T")

	c.text(16, 350, look{small: true, fill: faint},
		"T: session timeout. 0: the last contact of the holder. docent as with T = 30 s, Curator at its worst.")
	return c.done()
}
