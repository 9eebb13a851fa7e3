package waitqueue

import "github.com/docent-go/docent/framework"

// An Observer hears of an attempt's waiting, by the goroutine that drives it.
type Observer interface {
	// Waits is called each time that there are contenders ahead: how many.
	Waits(ahead int)
	// Behind is called, after that, with what the node holds that the attempt
	// waits for. It was read to set the watch on it.
	Behind(data []byte)
}

func (a *Attempt) observeWait(ahead int) {
	if a.Observer != nil {
		a.Observer.Waits(ahead)
	}
}

func (a *Attempt) observeAhead(ahead *framework.Watch) {
	if a.Observer != nil {
		a.Observer.Behind(ahead.Data())
	}
}
