package lock_test

import (
	"os"
	"testing"

	"github.com/docent-go/docent/testing/zktest"
)

func TestMain(m *testing.M) {
	if os.Getenv(servesAlone) != "" {
		serveAlone()
		return
	}
	zktest.Main(m, zktest.WithLeakCheck())
}
