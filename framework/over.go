package framework

// WhenOver calls fn once, when the deletion is over. If Delete finishes it, fn is called before
// Delete returns. If the deletion continues in the background, fn is called when the znode is gone,
// its session has ended, or the client is closed. A caller may then, for example, create the path's
// next znode. fn must not block, and may call the client.
func WhenOver(fn func()) DeleteOption {
	return deleteOption(func(cfg *deleteConfig) { cfg.over = &overHook{fn} })
}

// An overHook is a function that is called when a deletion is over.
type overHook struct{ fn func() }

func (h *overHook) tell() {
	if h != nil {
		h.fn()
	}
}
