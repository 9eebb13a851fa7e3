package lock_test

import (
	"encoding/json"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lease"
)

// TestAZnodeHoldsItsMetadataAsJSON: each attempt writes the metadata again, whatever the data are.
func TestAZnodeHoldsItsMetadataAsJSON(t *testing.T) {
	t.Parallel()
	host, _ := os.Hostname()
	for name, data := range map[string]string{
		"no data": "", "some": "some", "data that look like it": `{"since":"0001-01-01T00:00:00Z"}`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := virtualClient(t, virtualServer(t))
				m := newMutex(t, c, "/metadata", recipes.WithData([]byte(data)))
				for _, pause := range []time.Duration{0, 7 * time.Millisecond, 1500 * time.Microsecond, time.Hour} {
					await(pause)
					began := time.Now().UTC().Truncate(time.Millisecond)
					held := mustLock(t, m)
					got, _, err := c.Get(t.Context(), held.Node())
					if err != nil {
						t.Fatal(err)
					}
					read, _ := lease.DecodeMetadata(got)
					want, err := json.Marshal(metadata{
						Version: 1, Host: host, PID: os.Getpid(), Since: began, Data: []byte(data), Party: read.Party,
					})
					if err != nil || string(got) != string(want) {
						t.Errorf("after %v the znode holds\n%s, want\n%s", pause, got, want)
					}
					mustRelease(t, held)
				}
			})
		})
	}
}
