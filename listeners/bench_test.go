package listeners_test

import (
	"fmt"
	"testing"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/listeners"
)

func BenchmarkQueuedNotify(b *testing.B) {
	for _, n := range []int{1, 10} {
		b.Run(fmt.Sprint("listeners=", n), func(b *testing.B) {
			b.ReportAllocs()
			q := listeners.NewQueued[int](func(p *listeners.PanicError) { b.Error(p) })
			for range n {
				q.Add(func(int) {})
			}
			for b.Loop() {
				q.Notify(1)
			}
			must.OK(b, q.Close(b.Context()))
		})
	}
}

// BenchmarkQueuedRoundTrip is from Notify to the listener and back.
func BenchmarkQueuedRoundTrip(b *testing.B) {
	b.ReportAllocs()
	q := listeners.NewQueued[int](func(p *listeners.PanicError) { b.Error(p) })
	seen := make(chan int)
	q.Add(func(e int) { seen <- e })
	for b.Loop() {
		q.Notify(1)
		<-seen
	}
}
