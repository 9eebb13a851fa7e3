package retry_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/docent-go/docent/retry"
)

func ExampleDo() {
	attempts := 0
	err := retry.Do(context.Background(), retry.Exponential(time.Millisecond, 5), func(context.Context) error {
		if attempts++; attempts < 3 {
			return errors.New("connection lost")
		}
		return nil
	})
	fmt.Println(attempts, err)
	// Output: 3 <nil>
}

func ExampleDo_onRetry() {
	log := retry.OnRetry(func(f retry.Failure) {
		fmt.Printf("attempt %d: %v; next in %v\n", f.Attempt, f.Err, f.Wait)
	})
	err := retry.Do(context.Background(), retry.Times(2, time.Millisecond), func(context.Context) error {
		return errors.New("connection lost")
	}, log)

	var exhausted *retry.ExhaustedError
	if errors.As(err, &exhausted) {
		fmt.Printf("%d attempts: %v\n", exhausted.Attempts, exhausted.Err)
	}
	// Output:
	// attempt 1: connection lost; next in 1ms
	// attempt 2: connection lost; next in 1ms
	// 3 attempts: connection lost
}

func ExampleDo_deadline() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()

	errLost := errors.New("connection lost")
	err := retry.Do(ctx, retry.Forever(time.Hour), func(context.Context) error { return errLost })
	fmt.Println(err)
	fmt.Println(errors.Is(err, context.DeadlineExceeded), errors.Is(err, errLost))
	// Output:
	// retry: context deadline exceeded, after attempt 1: connection lost
	// true true
}

func ExampleValue() {
	attempts := 0
	leader, err := retry.Value(context.Background(), retry.Within(time.Minute, time.Millisecond),
		func(context.Context) (string, error) {
			if attempts++; attempts == 1 {
				return "", errors.New("no leader yet")
			}
			return "host-2", nil
		})
	fmt.Println(leader, err)
	// Output: host-2 <nil>
}

func ExamplePermanent() {
	errDenied := errors.New("access denied")
	err := retry.Do(context.Background(), retry.Forever(time.Hour), func(context.Context) error {
		return retry.Permanent(errDenied)
	})
	fmt.Println(err == errDenied) //nolint:errorlint // the very error, not one around it
	// Output: true
}

func ExampleValidate() {
	fmt.Println(retry.Validate(retry.Times(-1, -time.Second)))
	// Output:
	// retry: Times: n -1: must be 0 or more
	// retry: Times: wait -1s: must be 0 or more
}

func ExampleBoundedExponential() {
	p := retry.BoundedExponential(100*time.Millisecond, time.Second, 5,
		retry.WithRand(func() float64 { return 0.5 })) // the mean
	waits := p.NewBackOff()
	for wait := waits.NextBackOff(); wait >= 0; wait = waits.NextBackOff() {
		fmt.Println(wait)
	}
	// Output:
	// 100ms
	// 200ms
	// 400ms
	// 500ms
	// 500ms
}
