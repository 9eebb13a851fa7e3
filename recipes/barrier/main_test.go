package barrier_test

import (
	"testing"

	"github.com/docent-go/docent/testing/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m, zktest.WithLeakCheck()) }
