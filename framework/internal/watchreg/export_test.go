package watchreg

// LimitIdle has r leave only so many idle paths.
func LimitIdle(r *Registry, n int) { r.most = n }
