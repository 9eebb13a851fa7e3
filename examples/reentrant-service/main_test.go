package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"github.com/docent-go/docent/examples/harness"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
)

func TestNothingIsSoldTwiceUnderLoad(t *testing.T) {
	t.Parallel()
	zk, err := harness.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	defer zk.Embedded.Close()
	var out bytes.Buffer
	if err := run(t.Context(), zk, &out, ""); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "30 orders for 20 pieces: 20 sold, 10 sold out\n"; got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
}

// While the handler holds the lock, the layers below it hold it too, and no other client does.
func TestARequestIsOneOwnerInAllLayers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		zk, err := harness.Embedded()
		if err != nil {
			t.Fatal(err)
		}
		defer zk.Embedded.Close()
		client, err := framework.NewClient(zk.Connect, zk.Dialer)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		if _, err := client.Create(t.Context(), stockPath, []byte("1"), framework.WithParents()); err != nil {
			t.Fatal(err)
		}
		h, err := newHandler(client)
		if err != nil {
			t.Fatal(err)
		}
		mutex, err := lock.NewMutex(client, lockPath)
		if err != nil {
			t.Fatal(err)
		}
		stranger := lock.ContextWithOwner(t.Context(), lock.NewOwner("stranger"))
		lease, err := mutex.Lock(stranger)
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan *httptest.ResponseRecorder)
		go func() {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/orders", http.NoBody))
			served <- w
		}()
		synctest.Wait()
		select {
		case <-served:
			t.Error("an order was served while somebody else had the lock")
		default:
		}
		if err := lease.Release(stranger); err != nil {
			t.Error(err)
		}
		if w := <-served; w.Code != http.StatusCreated || w.Body.String() != "sold; 0 left\n" {
			t.Errorf("answer %d %q, want 201 and that 0 are left", w.Code, w.Body)
		}
	})
}
