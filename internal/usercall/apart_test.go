package usercall_test

import (
	"errors"
	"runtime"
	"testing"

	"github.com/docent-go/docent/internal/usercall"
)

func TestApart(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused by the test")
	if err := usercall.Apart(func() error { return refused }); !errors.Is(err, refused) {
		t.Errorf("%v, want the function's error", err)
	}
	func() {
		defer func() {
			if got := recover(); got != "by the test" {
				t.Errorf("recovered %v, want the function's panic", got)
			}
		}()
		_ = usercall.Apart(func() error { panic("by the test") })
		t.Error("Apart has returned after a panic")
	}()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = usercall.Apart(func() error { runtime.Goexit(); return nil })
		t.Error("Apart has returned after Goexit")
	}()
	<-ended
}
