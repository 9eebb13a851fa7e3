// Package cachebounds bounds what a cache reads, for the command's live view. Users have no such options.
package cachebounds

import "github.com/docent-go/docent/framework"

// Bounds bound a cache. It is embedded, together with a cache.Option, into another one.
type Bounds struct {
	// The cache keeps and reads the data of those znodes alone for which one of the two returns true. ByPath
	// decides before anything is read, and ByStat for the rest, for which the data cost another read. Both
	// must return the same for the same arguments and must not block. If one panics, that is logged, and it
	// has not asked for the data. Both are nil for the data of all.
	ByPath func(path string) bool
	ByStat func(path string, stat framework.Stat) bool

	Znodes  int         // the cache leaves out others, with all below them, until there is room; 0 for no bound
	LeftOut func(n int) // is told how many, without those below them; nil for none
	Rate    int         // reads and listings in a second; 0 for no bound
}

// CacheBounds returns b.
func (b Bounds) CacheBounds() Bounds { return b }
