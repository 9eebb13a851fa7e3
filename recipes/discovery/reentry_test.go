package discovery_test

import (
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/testing/zkserver"
)

// A curious payload asks its registration for the instance while it is encoded.
type curious struct {
	Zone string
	ask  func()
}

// MarshalJSON is part of json.Marshaler.
func (c curious) MarshalJSON() ([]byte, error) {
	if c.ask != nil {
		c.ask()
	}
	return []byte(`"` + c.Zone + `"`), nil
}

// UnmarshalJSON is part of json.Unmarshaler.
func (c *curious) UnmarshalJSON([]byte) error { return nil }

// A payload's methods may call the registration that encodes it.
func TestPayloadCallsItsRegistration(t *testing.T) {
	t.Parallel()
	srv := zkserver.Run(t)
	client := must.Get(framework.NewClient(srv.Addr(), framework.WithDialer(srv.Dial)))(t)
	t.Cleanup(func() { _ = client.Close() })
	registry := must.Get(discovery.New[curious](client, "/services"))(t)
	reg := must.Get(registry.Register(discovery.Instance[curious]{Name: "web", ID: "i1", Address: "h", Port: 80}))(t)
	done := make(chan error, 1)
	seen := make(chan int, 1)
	in := discovery.Instance[curious]{Name: "web", Address: "h", Port: 81}
	in.Payload.ask = func() {
		select {
		case seen <- reg.Instance().Port:
		default:
		}
	}
	go func() { done <- reg.Update(t.Context(), in) }()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("Update blocks: the payload's MarshalJSON is called with the registration's mutex held")
	}
	if got := <-seen; got != 80 {
		t.Errorf("MarshalJSON saw port %d, want that before the update", got)
	}
	if got := reg.Instance().Port; got != 81 {
		t.Errorf("port %d after the update, want 81", got)
	}
}
