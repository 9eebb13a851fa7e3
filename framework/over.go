package framework

// WhenOver has fn called, once, when the deletion is over: before Delete returns or, where
// that goes on in the background, when the znode is gone, its session has ended, or the
// client is closed. It is for whoever may do something only then, such as to create the
// path's next znode. fn must not block, and may call the client.
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
