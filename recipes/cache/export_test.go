package cache

import "github.com/docent-go/docent/framework"

// Known returns how many values are kept.
func Known[T any](v *Values[T]) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.known)
}

// NewEach is New for a server without recursive watches, whatever server there is.
func NewEach(c *framework.Client, path string, opts ...Option) (*Cache, error) {
	cfg, err := newConfig(path, opts)
	if err != nil {
		return nil, recipe.Error("new", path, err)
	}
	return start(c, path, cfg, watchEach), nil
}
