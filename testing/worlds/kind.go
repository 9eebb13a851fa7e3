package worlds

import "fmt"

// A Kind is one of the worlds that a test can run in.
type Kind int

// The kinds of worlds: see the package's documentation.
const (
	Embedded Kind = iota + 1
	EmbeddedEnsemble
	Standalone
	Ensemble
)

// allKinds is in the order in which the subtests are listed.
func allKinds() []Kind { return []Kind{Embedded, EmbeddedEnsemble, Standalone, Ensemble} }

// String returns the name of the world's subtest, such as "embedded-ensemble".
func (k Kind) String() string {
	switch k {
	case Embedded:
		return "embedded"
	case EmbeddedEnsemble:
		return "embedded-ensemble"
	case Standalone:
		return "standalone"
	case Ensemble:
		return "ensemble"
	}
	return fmt.Sprintf("Kind(%d)", int(k))
}

// Virtual reports whether time is virtual in the world: then its body runs in a
// testing/synctest bubble, and waiting costs nothing.
func (k Kind) Virtual() bool { return k == Embedded || k == EmbeddedEnsemble }

// Members returns how many servers the world has.
func (k Kind) Members() int {
	if k == EmbeddedEnsemble || k == Ensemble {
		return 3
	}
	return 1
}
