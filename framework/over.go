package framework

// WhenOver calls fn once, when the deletion is over, and says whether the znode is known to be gone.
// If Delete finishes it, fn is called before Delete returns. If the deletion continues in the
// background, fn is called when the znode is gone, its session has ended, or the client is closed. A
// znode whose session has ended may exist until the ensemble has expired the session. If it is gone, a
// caller may, for example, create the path's next znode. fn must not block, and may call the client.
func WhenOver(fn func(gone bool)) DeleteOption {
	return deleteOption(func(cfg *deleteConfig) { cfg.over = &overHook{fn} })
}

// An overHook is a function that is called when a deletion is over.
type overHook struct{ fn func(gone bool) }

func (h *overHook) tell(gone bool) {
	if h != nil {
		h.fn(gone)
	}
}
