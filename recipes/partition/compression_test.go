package partition_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/testing/zkserver"
)

// Members with and without compression divide the keys, whichever came first. If each left the other out, both
// would contend for all keys.
func TestMembersThatCannotReadEachOtherDivideTheKeys(t *testing.T) {
	t.Parallel()
	for _, ids := range [][]string{{"plain", "packed"}, {"packed", "plain"}, {"packed", "packed-2"}} {
		t.Run(fmt.Sprint(ids), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, o, keys := zkserver.Run(t), newOracle(t), names("key-", 8)
				client := func(id string) *framework.Client {
					opts := []framework.Option{framework.WithDialer(s.Dial)}
					if id != "plain" {
						opts = append(opts, framework.WithCompression())
					}
					return recipetest.Client(t, s.Addr(), opts...)
				}
				first := o.start(t, client(ids[0]), "/shards", ids[0], keys)
				o.await(t, keys, ids[0])
				o.start(t, client(ids[1]), "/shards", ids[1], keys)
				o.await(t, keys, ids...)
				first.leave(t)
				o.await(t, keys, ids[1])
				o.start(t, client(ids[0]), "/shards", ids[0], keys)
				o.await(t, keys, ids...)
			})
		})
	}
}
