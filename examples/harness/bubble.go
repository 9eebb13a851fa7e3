package harness

import (
	"bytes"
	"context"
	"io"
	"testing"
	"testing/synctest"
)

// RunInBubble runs an example on an embedded server in virtual time, and returns what it printed.
// The example has to stay in that time: it may neither use the network nor start processes.
func RunInBubble(t *testing.T, run func(ctx context.Context, zk ZooKeeper, out io.Writer) error) (printed string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		zk, err := Embedded()
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		err = run(t.Context(), zk, &out)
		if closeErr := zk.Embedded.Close(); closeErr != nil {
			t.Error(closeErr)
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
		printed = out.String()
	})
	return printed
}
