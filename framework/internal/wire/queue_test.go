package wire

import (
	"testing"
	"time"
)

// What one lane sent while the other was idle gives the other no claim.
func TestAnIdleLaneGainsNoClaim(t *testing.T) {
	var q queue
	w, now := newWindow(10*time.Second), time.Now()
	add := func(class Class) { q.add(&Request{Class: class, sending: sending{cost: 1000}}) }
	for range 10_000 { // each goes out at once
		add(Ordinary)
		q.next(&w, now)
	}
	add(Apart)
	add(Apart)
	add(Ordinary)
	n := 0
	for ; q.next(&w, now).Class == Apart; n++ {
		add(Apart)
	}
	if n > 2 {
		t.Errorf("%d reads went ahead of a write", n)
	}
}
