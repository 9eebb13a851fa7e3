package framework

import (
	"go.uber.org/zap"

	"github.com/docent-go/docent/internal/usercall"
)

// WhenOver calls fn once, when the deletion is over, and says whether the znode is known to be gone.
// If Delete finishes it, fn is called before Delete returns. If the deletion continues in the
// background, fn is called when the znode is gone, its session has ended, or the client is closed;
// then fn has a goroutine of its own. A znode whose session has ended may exist until the ensemble
// has expired the session. If it is gone, a caller may, for example, create the path's next znode.
// fn may call the client, Close included.
func WhenOver(fn func(gone bool)) DeleteOption {
	return deleteOption(func(cfg *deleteConfig) { cfg.over = &overHook{fn} })
}

// An overHook is a function that is called when a deletion is over.
type overHook struct{ fn func(gone bool) }

// tell calls the function for the caller of an operation.
func (h *overHook) tell(gone bool) {
	if h != nil && h.fn != nil {
		h.fn(gone)
	}
}

// tellLater calls the function on a goroutine of its own, because Close waits for the goroutines of
// the client, and the function may call Close. The goroutine ends when the function returns.
func (h *overHook) tellLater(log *zap.Logger, gone bool) {
	if h != nil {
		go usercall.Guard(log, "WhenOver", func() { h.fn(gone) })
	}
}
