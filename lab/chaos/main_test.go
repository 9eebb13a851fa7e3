package chaos_test

import (
	"os"
	"testing"

	"github.com/docent-go/docent/testing/zktest"
)

func TestMain(m *testing.M) {
	if config := os.Getenv(workerVariable); config != "" {
		os.Exit(runWorker(config))
	}
	zktest.Main(m, zktest.WithLeakCheck())
}
