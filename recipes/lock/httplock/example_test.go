package httplock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/recipes/lock/httplock"
)

// A handler that one request at a time may run, on all hosts together.
func ExampleNew() {
	client, closeAll := recipetest.ExampleClient()
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

// A request waits for the lock at most 100 ms, and is then answered with 409.
func ExampleWithWait() {
	client, closeAll := recipetest.ExampleClient()
	defer closeAll()
	mutex, err := lock.NewMutex(client, "/locks/report")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := mutex.Lock(context.Background()); err != nil { // another request holds it
		log.Fatal(err)
	}
	write := func(http.ResponseWriter, *http.Request, *lock.Lease) error { return nil }
	report, err := httplock.New(httplock.Same(mutex), write, httplock.WithWait(100*time.Millisecond))
	if err != nil {
		log.Fatal(err)
	}
	answer := httptest.NewRecorder()
	report.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/report", nil))
	fmt.Println(answer.Code, "retry after:", answer.Header().Get("Retry-After") != "")
	// Output: 409 retry after: true
}

// A service has answers of its own. They show no text of the error, which names hosts and paths.
func ExampleWithRefusal() {
	client, closeAll := recipetest.ExampleClient()
	defer closeAll()
	mutex, err := lock.NewMutex(client, "/locks/report")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := mutex.Lock(context.Background()); err != nil { // another request holds it
		log.Fatal(err)
	}
	write := func(http.ResponseWriter, *http.Request, *lock.Lease) error { return nil }
	report, err := httplock.New(httplock.Same(mutex), write, httplock.WithoutWaiting(),
		httplock.WithRefusal(func(w http.ResponseWriter, _ *http.Request, err error) {
			w.WriteHeader(httplock.Status(err))
			fmt.Fprintf(w, `{"busy":%v}`, errors.Is(err, lock.ErrHeld))
		}))
	if err != nil {
		log.Fatal(err)
	}
	answer := httptest.NewRecorder()
	report.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/report", nil))
	fmt.Println(answer.Code, answer.Body)
	// Output: 409 {"busy":true}
}
