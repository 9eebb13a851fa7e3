package query_test

import (
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/docent-go/docent/testing/zktest"
)

func TestMain(m *testing.M) {
	// The loop that os/signal starts at its first use must not belong to a test's bubble.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR2)
	signal.Stop(signals)
	zktest.Main(m)
}
