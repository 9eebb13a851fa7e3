package hold

import (
	"fmt"
	"math/rand/v2"
	"sync"
)

// Process returns a random id of this process, which its znodes show. Host and pid don't identify a
// process: containers on one host network all have pid 1.
var Process = sync.OnceValue(func() string { //nolint:gochecknoglobals // immutable
	return fmt.Sprintf("%016x", rand.Uint64())
})
