package proto_test

import (
	"math"
	"testing"

	"github.com/docent-go/docent/internal/proto"
)

func TestIsSession(t *testing.T) {
	t.Parallel()
	session := func(server int64) int64 { return server<<56 | 5 }
	for owner, want := range map[int64]bool{
		session(1): true, session(127): true, session(128): true, session(254): true,
		0: false, session(255): false, math.MinInt64: false, // persistent, with a TTL, a container
	} {
		if got := proto.IsSession(owner); got != want {
			t.Errorf("%#x is a session: %v, want %v", uint64(owner), got, want)
		}
	}
}
