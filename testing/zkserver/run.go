package zkserver

import "testing"

// Run starts a server for the test, as [Start] does, and closes it when the test has ended. If
// options are out of their bounds, Run fails the test with all faults.
//
// In a testing/synctest bubble, pass the bubble's t: then the server is closed within the bubble.
// Clean-up functions that are registered after Run, such as a client's Close, are called before.
func Run(t testing.TB, opts ...Option) *Server {
	t.Helper()
	s, err := Start(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
