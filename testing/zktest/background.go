package zktest

import "go.uber.org/goleak"

// background is under every goroutine of the package, which makes them known.
func background(fn func()) { fn() }

// IgnoreServers makes goleak ignore the goroutines that look after servers which
// still run, for tests that check for leaks while they share one.
func IgnoreServers() goleak.Option {
	return goleak.IgnoreAnyFunction("github.com/docent-go/docent/testing/zktest.background")
}
