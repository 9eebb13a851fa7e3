package zkenv

import "fmt"

// A Kind is one of the environments that a test can run in.
type Kind int

// The kinds of environments: see the package's documentation.
const (
	Embedded Kind = iota + 1
	EmbeddedEnsemble
	Standalone
	Ensemble
)

// allKinds is in the order in which the subtests are listed.
func allKinds() []Kind { return []Kind{Embedded, EmbeddedEnsemble, Standalone, Ensemble} }

// String returns the name of the environment's subtest, such as "embedded-ensemble".
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

// Virtual reports whether time is virtual in the environment: then its body runs in a
// testing/synctest bubble, and waiting costs nothing.
func (k Kind) Virtual() bool { return k == Embedded || k == EmbeddedEnsemble }

// Members returns how many servers the environment has.
func (k Kind) Members() int {
	if k == EmbeddedEnsemble || k == Ensemble {
		return 3
	}
	return 1
}
