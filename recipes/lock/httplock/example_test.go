package httplock_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/recipes/lock/httplock"
	"github.com/docent-go/docent/testing/zkserver"
)

func exampleClient() (client *framework.Client, closeAll func()) {
	server, err := zkserver.Start()
	if err != nil {
		panic(err)
	}
	client, err = framework.NewClient(server.Addr(), framework.WithDialer(server.Dial))
	if err != nil {
		panic(err)
	}
	return client, func() {
		_ = client.Close() // the example is over
		_ = server.Close()
	}
}

// A handler that one request at a time may run, on all hosts together.
func ExampleNew() {
	client, closeAll := exampleClient()
	defer closeAll()
	mutex, err := lock.NewMutex(client, "/locks/report")
	if err != nil {
		log.Fatal(err)
	}
	report, err := httplock.New(httplock.Same(mutex), func(w http.ResponseWriter, _ *http.Request, l *lock.Lease) error {
		_, err := fmt.Fprint(w, "written under the lock, held: ", l.Err() == nil)
		return err
	}, httplock.WithoutWaiting()) // a busy lock is answered with 409 at once
	if err != nil {
		log.Fatal(err)
	}
	answer := httptest.NewRecorder()
	report.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/report", nil))
	fmt.Println(answer.Code, answer.Body)
	// Output: 200 written under the lock, held: true
}
