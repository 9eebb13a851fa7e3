package query

import (
	"context"
	"fmt"
	"slices"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/zkpath"
)

// findContender returns the contender whose znode is at the path, and its lock. It fails for any
// other path, such as that of a lock.
func findContender(ctx context.Context, c *framework.Client, znode string) (l inspect.Lock, found inspect.Contender, err error) {
	if err := framework.ValidatePath(znode); err != nil {
		return l, found, err
	}
	dir, _ := zkpath.Split(znode)
	above, _ := zkpath.Split(dir)
	for _, path := range []string{znode, dir, above} { // an unfair mutex, a queue, a semaphore
		if path == "" {
			continue
		}
		if l, err = inspect.Read(ctx, c, path); err != nil {
			return l, found, err
		}
		for _, found := range l.Contenders {
			switch znode {
			case found.Znode:
				return l, found, nil
			case found.Turn:
				return l, found, fmt.Errorf("%s is in the queue: its contender's znode is %s", c.AbsolutePath(znode), c.AbsolutePath(found.Znode))
			}
		}
	}
	return l, found, fmt.Errorf("%s is no contender's znode: docent queue -o name lists those of a lock", c.AbsolutePath(znode))
}

// behind returns the contenders that wait for the znode alone.
func behind(l inspect.Lock, znode string) []inspect.Contender {
	return slices.DeleteFunc(l.Waiters(), func(c inspect.Contender) bool {
		return !slices.Contains(c.WaitsFor, znode) || len(c.WaitsFor) > 1 && !c.AnyOf
	})
}
