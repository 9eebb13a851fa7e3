// Package treecopy keeps a copy of a part of the tree: it reads what a source of changes notifies of.
package treecopy

import (
	"time"

	"go.uber.org/zap"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/extent"
	"github.com/docent-go/docent/recipes/internal/pathtree"
)

// A Znode is a znode as it was last read.
type Znode struct {
	Path string
	Data []byte
	Stat framework.Stat
}

// A Change is one change of a copy.
type Change struct {
	Old, New *Znode // nil for none
}

// A Refusal is a znode that can't be read, and why.
type Refusal struct {
	Path string
	Err  error
}

// A Copy is what a Loop has copied. It never changes.
type Copy struct {
	Tree    pathtree.Tree[Znode]
	Unread  pathtree.Tree[Refusal] // left out, with all below
	Settled bool                   // it is the tree at one instant
	LeftOut int                    // how many znodes the limit leaves out, without those below them
}

// Options say what a Loop copies, and whom it reports to. They are immutable. The functions are called
// by the goroutine of Run.
type Options struct {
	Client *framework.Client
	Extent extent.Extent
	NoData bool // the copy has no data
	Log    *zap.Logger

	// The copy has the data of a znode if one of the two is true. Both are nil for the data of all.
	// WantsByPath comes first, because then one read is enough.
	WantsByPath func(path string) bool
	WantsByStat func(path string, stat framework.Stat) bool

	Limit int // of the number of znodes; 0 for none
	Rate  int // of reads and listings in a second; 0 for no bound

	// Publish reports the copy, and the changes that lead to it.
	Publish func(now Copy, changes []Change)
	Unseen  func()                   // changes may have been missed; everything is read again
	Filled  func(took time.Duration) // nothing that belongs to the fill is left to be read
	Failed  func(error)              // an attempt to read has failed, and is repeated
	Refused func(error)              // why the root can't be read; nil if it can be
}
