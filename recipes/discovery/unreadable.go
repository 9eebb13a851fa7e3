package discovery

import (
	"sync"

	"go.uber.org/zap"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/usercall"
	"github.com/docent-go/docent/recipes/locktel"
)

// maxReported bounds the znodes that a reporter remembers.
const maxReported = 10_000

// A reporter reports each state of an unreadable znode once.
type reporter struct {
	client *framework.Client
	fn     func(path string, err error) // nil to log

	mu       sync.Mutex       // guards following; not held while fn is called
	reported map[string]int64 // mzxid of the last report, by path
}

// report reports that the znode at path, in the state of st, is no instance.
func (r *reporter) report(path string, st framework.Stat, err error) {
	r.mu.Lock()
	last, known := r.reported[path]
	if len(r.reported) >= maxReported {
		clear(r.reported) // some are reported again
	}
	r.reported[path] = st.Mzxid
	r.mu.Unlock()
	if known && last == st.Mzxid {
		return
	}
	log := r.client.Logger().Named("discovery")
	if r.fn == nil {
		log.Warn("a znode is no instance: it is left out",
			zap.String(locktel.AttrPath, r.client.AbsolutePath(path)), zap.Error(err))
		return
	}
	usercall.Guard(log, "WithUnreadable", func() { r.fn(path, err) })
}
