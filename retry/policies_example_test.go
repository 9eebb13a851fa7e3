package retry_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/docent-go/docent/retry"
)

// firstWaits returns the first few waits of one operation under a policy.
func firstWaits(p retry.Policy) (all []time.Duration) {
	waits := p.NewBackOff()
	for range 4 {
		wait := waits.NextBackOff()
		if wait == backoff.Stop {
			break
		}
		all = append(all, wait)
	}
	return all
}

func ExampleNever() {
	fmt.Println(firstWaits(retry.Never()))
	// Output: []
}

func ExampleOnce() {
	fmt.Println(firstWaits(retry.Once(time.Second)))
	// Output: [1s]
}

func ExampleTimes() {
	fmt.Println(firstWaits(retry.Times(3, time.Second)))
	// Output: [1s 1s 1s]
}

// For as long as the context lasts.
func ExampleForever() {
	fmt.Println(firstWaits(retry.Forever(time.Second)), "and so on")
	// Output: [1s 1s 1s 1s] and so on
}

// No wait begins that would end after the limit.
func ExampleWithin() {
	err := retry.Do(context.Background(), retry.Within(time.Second, time.Hour), func(context.Context) error {
		return errors.New("connection lost")
	})
	fmt.Println(err)
	// Output: connection lost
}

// The waits are random, between none and twice what is shown here.
func ExampleExponential() {
	mean := retry.WithRand(func() float64 { return 0.5 })
	fmt.Println(firstWaits(retry.Exponential(100*time.Millisecond, 3, mean)))
	// Output: [100ms 200ms 400ms]
}

// A wait ends early when what is waited for is there.
func ExampleHurry() {
	connected := make(chan struct{})
	attempts := 0
	err := retry.Do(context.Background(), retry.Forever(time.Hour), func(context.Context) error {
		if attempts++; attempts == 1 {
			close(connected) // as another goroutine would, during the wait
			return errors.New("not connected")
		}
		return nil
	}, retry.Hurry(func(retry.Failure) <-chan struct{} { return connected }))
	fmt.Println(attempts, err)
	// Output: 2 <nil>
}

func ExampleExhaustedError() {
	errBusy := errors.New("busy")
	err := retry.Do(context.Background(), retry.Times(2, time.Millisecond), func(context.Context) error { return errBusy })
	var exhausted *retry.ExhaustedError
	fmt.Println(errors.As(err, &exhausted), exhausted.Attempts, errors.Is(err, errBusy))
	// Output: true 3 true
}
