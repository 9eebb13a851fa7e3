package fragments_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/listeners"
)

type orderPlaced struct{ id int }

func example() {
	var orders listeners.Set[orderPlaced]
	remove := orders.Add(func(e orderPlaced) { fmt.Println("order", e.id) })
	defer remove()
	orders.Notify(orderPlaced{17})
}

func Example_listeners() {
	example()
	// Output: order 17
}

// The sequence of states ends with the client.
func TestListenersPage_states(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s scene) {
		if err := s.client.AwaitConnected(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.client.Close(); err != nil {
			t.Fatal(err)
		}
		printStates(t.Context(), s.client)
	})
}

func printStates(ctx context.Context, client *framework.Client) {
	for change := range client.States(ctx) {
		fmt.Println(change)
	}
}
