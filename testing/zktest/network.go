package zktest

// A network is where an ensemble's members run, and by what they and their clients
// reach each other.
type network interface {
	// place returns where a member runs.
	place(member int) place
	// set has exactly these ways cut. After an error some may be as before; another
	// call tries them again. It must not be called concurrently.
	set(c cuts) error
	// close ends the network, whose members must be gone.
	close() error
}

// A place is where one member of an ensemble runs.
type place struct {
	host  string
	port  int      // for clients
	peers []peer   // as the member reaches them; none: standalone
	enter []string // the command that runs another one there; none: it runs in this process's namespace
}

// newNetwork returns the network for an ensemble of n.
func newNetwork(n int, cfg config) (network, error) {
	if cfg.namespaces {
		return newNamespaces(n)
	}
	return newMesh(n)
}
