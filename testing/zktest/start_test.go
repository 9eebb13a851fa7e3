package zktest_test

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zktest"
)

func TestStartAtATakenPort(t *testing.T) {
	t.Parallel()
	server := zktest.Shared(t)
	stranger := must.Get(net.Listen("tcp4", "127.0.0.1:0"))(t)
	defer stranger.Close()
	for _, c := range []struct {
		name string
		port int
	}{
		{"another ZooKeeper's, which answers every question", server.Port()},
		{"a stranger's, who answers none", stranger.Addr().(*net.TCPAddr).Port},
	} {
		t.Run(c.name, func(t *testing.T) {
			second, err := zktest.StartAt(t.Context(), c.port)
			if err == nil {
				second.Close()
			}
			if !errors.Is(err, zktest.ErrPortTaken) {
				t.Fatalf("StartAt() = %v; want the error about a taken port", err)
			}
			if !strings.Contains(err.Error(), "BindException") {
				t.Errorf("error without the server's log: %v", err)
			}
		})
	}
}

func TestStartIsRepeatedOnlyForTakenPorts(t *testing.T) {
	t.Parallel()
	other := errors.New("other")
	taken := fmt.Errorf("start: %w", zktest.ErrPortTaken)
	for _, c := range []struct {
		name  string
		errs  []error // of the starts, in their order; nil after the last
		want  error
		calls int
	}{
		{"success at once", nil, nil, 1},
		{"another error", []error{other}, other, 1},
		{"a taken port, then success", []error{taken}, nil, 2},
		{"taken ports, then another error", []error{taken, taken, other}, other, 3},
		{"ports that are always taken", []error{taken, taken, taken, taken, taken, taken}, taken, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			calls := 0
			_, err := zktest.RetryTaken(func() (int, error) {
				calls++
				if calls > len(c.errs) {
					return 0, nil
				}
				return 0, c.errs[calls-1]
			})
			if !errors.Is(err, c.want) || calls != c.calls {
				t.Errorf("%d starts and error %v; want %d and %v", calls, err, c.calls, c.want)
			}
		})
	}
}
