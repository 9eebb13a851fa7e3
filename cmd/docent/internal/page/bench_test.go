package page_test

import (
	"bufio"
	"fmt"
	"testing"
	"time"

	"github.com/docent-go/docent/cmd/docent/inspect"
)

// An update of 10,000 locks, from the view until a tab has the message.
func BenchmarkUpdate(b *testing.B) {
	s := serve(b, nil)
	locks := manyLocks(10_000)
	lines := bufio.NewReader(s.ask(b, "GET", "/events", "").Body)
	at := time.Now()
	show := func() {
		at = at.Add(time.Second)
		s.script <- inspect.View{
			Snapshot: inspect.Snapshot{At: at, Locks: locks, Complete: true}, State: inspect.Current, Since: at,
		}
		readMessage(b, lines)
	}
	readMessage(b, lines)
	show()
	for i := 0; b.Loop(); i++ {
		locks = append([]inspect.Lock{}, locks...)
		locks[0] = mutex("/locks/00000", fmt.Sprintf("owner-%d", i))
		show()
	}
}

// manyLocks returns n locks with a holder. Each tenth has a waiter, too.
func manyLocks(n int) []inspect.Lock {
	locks := make([]inspect.Lock, n)
	for i := range locks {
		owners := []string{fmt.Sprintf("owner-%d", i)}
		if i%10 == 0 {
			owners = append(owners, fmt.Sprintf("waiter-%d", i))
		}
		locks[i] = mutex(fmt.Sprintf("/locks/%05d", i), owners...)
	}
	return locks
}
