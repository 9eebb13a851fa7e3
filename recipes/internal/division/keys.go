package division

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/errtype"
)

// maxKeys bounds the keys: each one is a znode, and a goroutine of its server.
const maxKeys = 10_000

// Faults returns what prevents that the keys are divided.
func Faults(keys []string) (faults []error) {
	if len(keys) == 0 || len(keys) > maxKeys {
		return []error{fmt.Errorf("%d keys: must be from 1 to %d", len(keys), maxKeys)}
	}
	seen := make(map[string]bool, len(keys))
	for _, key := range keys {
		if err := framework.ValidatePath("/" + key); key == "" || strings.Contains(key, "/") || err != nil {
			faults = append(faults, fmt.Errorf("key %q: must not be empty or contain a slash, and must be a name of a znode", errtype.Shortened(key)))
		} else if seen[key] {
			faults = append(faults, fmt.Errorf("key %q: must be given once", errtype.Shortened(key)))
		}
		seen[key] = true
	}
	return faults
}

// Digest returns what tells a set of keys from others, whatever their order.
func Digest(keys []string) string {
	h := sha256.New()
	for _, key := range slices.Sorted(slices.Values(keys)) {
		h.Write([]byte(key + "/")) // keys have no slash
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
