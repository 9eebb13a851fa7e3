package listeners_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/docent-go/docent/listeners"
)

func ExampleQueued() {
	states := listeners.NewQueued[string](func(p *listeners.PanicError) { fmt.Println(p) })
	states.Add(func(state string) { fmt.Println("state:", state) })

	states.Notify("connected") // returns at once, whatever the listener does
	states.Notify("lost")
	states.Notify("closed")
	if err := states.Close(context.Background()); err != nil { // waits until all has been seen
		fmt.Println(err)
	}
	// Output:
	// state: connected
	// state: lost
	// state: closed
}

func ExampleQueued_AddWith() {
	var (
		mu      sync.Mutex // guards current, and its order among the events
		current = "connecting"
		states  = listeners.NewQueued[string](func(p *listeners.PanicError) { fmt.Println(p) })
	)
	change := func(to string) {
		mu.Lock()
		defer mu.Unlock()
		current = to
		states.Notify(to)
	}
	subscribe := func(fn func(string)) (remove func()) {
		mu.Lock()
		defer mu.Unlock()
		return states.AddWith(current, fn)
	}

	change("connected")
	subscribe(func(state string) { fmt.Println(state) })
	change("closed")
	_ = states.Close(context.Background())
	// Output:
	// connected
	// closed
}
