package lock_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/docent-go/docent/internal/queuenode"
	"github.com/docent-go/docent/recipes/lease"
)

// FuzzNodeData reads arbitrary data of a contender's znode.
func FuzzNodeData(f *testing.F) {
	f.Add([]byte(`{"docent":1,"owner":"o","host":"h","pid":7,"since":"2026-01-02T03:04:05Z","data":"AAE="}`), int32(0))
	f.Add([]byte("10.0.0.1"), int32(0))
	f.Add([]byte("__REVOKE__"), int32(1))
	f.Add([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff}, int32(1))
	f.Add([]byte(`{"docent":0}`), int32(2))
	f.Fuzz(func(t *testing.T, data []byte, version int32) {
		given := slices.Clone(data)
		m, ok := lease.DecodeMetadata(data)
		if ok != (m != nil) || ok && m.Version < 1 {
			t.Errorf("%q: %+v, %v", data, m, ok)
		}
		if ok {
			encoded, err := json.Marshal(m)
			if err != nil {
				return // a year that can be read and not written
			}
			again, ok := lease.DecodeMetadata(encoded)
			if !ok || again.Owner != m.Owner || again.PID != m.PID || !again.Since.Equal(m.Since) || !bytes.Equal(again.Data, m.Data) {
				t.Errorf("%q is read as %+v, written and read again %+v", data, m, again)
			}
		}
		if queuenode.RequestsRelease(data, 0) {
			t.Errorf("%q, put there by the contender itself, is taken for a request", data)
		}
		if plain := string(data) == "__REVOKE__"; plain && version != 0 && !queuenode.RequestsRelease(data, version) {
			t.Error("a request is not seen")
		}
		if !bytes.Equal(data, given) {
			t.Error("the data was changed")
		}
	})
}
