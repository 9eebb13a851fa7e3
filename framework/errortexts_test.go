package framework_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/testing/zkserver"
)

// A call whose context had ended before has sent nothing, so its outcome is known.
func TestReadyWithAnEndedContext(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtual(t, srv)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := c.Ready(ctx)
		wantErr(t, "Ready", err, context.Canceled)
		if errors.Is(err, framework.ErrUnknownOutcome) {
			t.Errorf("Ready: %v, want no unknown outcome", err)
		}
	})
}

// A path that a user typed can't write a line of its own to a log.
func TestErrorTextsHaveOneLine(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtual(t, srv)
		for _, path := range []string{"/a\nb", "/a\x1b[31m", "/a\xff", "/\u2028", "a\rb"} {
			_, _, get := c.Get(t.Context(), path)
			_, txn := c.Txn(t.Context(), framework.OpDelete(path, framework.AnyVersion))
			for what, err := range map[string]error{
				"Get": get, "Txn": txn, "Delete": c.Delete(t.Context(), path), "DeleteTree": c.DeleteTree(t.Context(), path),
				"CheckCreate": c.CheckCreate(path, nil),
			} {
				if err == nil {
					continue // valid for ZooKeeper, or no path
				}
				if strings.ContainsAny(err.Error(), "\r\x1b\xff\u2028") || strings.Contains(err.Error(), "a\nb") {
					t.Errorf("%s: %q", what, err.Error())
				}
			}
		}
	})
}
