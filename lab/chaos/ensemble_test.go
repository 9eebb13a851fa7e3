package chaos_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/lab/history"
)

// connect returns a client that is not part of the run, and is closed with the test.
func connect(t testing.TB, addr string) *framework.Client {
	t.Helper()
	c := must.Get(framework.NewClient(addr))(t)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	must.OK(t, c.AwaitConnected(t.Context()))
	return c
}

// addEphemerals adds the ephemeral znodes below a path, or the path itself if it is one, with their owners.
func addEphemerals(ctx context.Context, c *framework.Client, path string, to map[string]int64) error {
	stat, ok, err := c.Exists(ctx, path)
	if err != nil || !ok {
		return err
	}
	if stat.EphemeralOwner != 0 {
		to[path] = stat.EphemeralOwner
		return nil
	}
	children, _, err := c.Children(ctx, path)
	if err != nil && !errors.Is(err, framework.ErrNoNode) {
		return err
	}
	for _, child := range children {
		if err := addEphemerals(ctx, c, path+"/"+child, to); err != nil {
			return err
		}
	}
	return nil
}

// writeLines writes records as lines of JSON.
func writeLines(path string, records []history.Record) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(file)
	lines := json.NewEncoder(w)
	for _, r := range records {
		if err := lines.Encode(r); err != nil {
			return errors.Join(err, file.Close())
		}
	}
	return errors.Join(w.Flush(), file.Close())
}
