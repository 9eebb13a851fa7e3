package zkserver_test

import (
	"testing"
	"time"

	"github.com/docent-go/docent/testing/zktest"
)

func TestMain(m *testing.M) {
	zktest.Main(m,
		zktest.WithLeakCheck(),
		zktest.WithShared(zktest.WithSessionTimeouts(time.Second, time.Minute)))
}
