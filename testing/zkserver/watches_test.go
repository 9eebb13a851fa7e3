package zkserver_test

import (
	"testing"

	"github.com/docent-go/docent/testing/zkserver"
)

// The end of a connection costs what its own watches do, however many others there are.
func TestEndOfAConnectionAmongManyWatches(t *testing.T) {
	t.Parallel()
	if set, ended := zkserver.WatchAndEnd(100_000, 200); ended > set {
		t.Errorf("100000 connections began to watch within %v, but 200 of them ended within %v", set, ended)
	}
}
