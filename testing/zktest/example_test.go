package zktest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/docent-go/docent/testing/zktest"
)

func ExampleStart() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	server, err := zktest.Start(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	mode, err := server.Mode(ctx)
	fmt.Println(mode, err)
	// Output: standalone <nil>
}

// In a package's tests, TestMain calls Main, and tests share one server.
func ExampleMain() {
	_ = func(m *testing.M) { // func TestMain(m *testing.M)
		zktest.Main(m, zktest.WithLeakCheck(), zktest.WithShared(zktest.WithTickTime(200*time.Millisecond)))
	}
	_ = func(t *testing.T) { // func TestSomething(t *testing.T)
		server := zktest.Shared(t)
		t.Log(server.Addr())
	}
}

func ExampleRunEnsemble() {
	_ = func(t *testing.T) { // func TestSomething(t *testing.T)
		ensemble := zktest.RunEnsemble(t, 3)
		followers, err := ensemble.Followers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ensemble.Isolate(followers[0])
	}
}
