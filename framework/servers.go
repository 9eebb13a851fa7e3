package framework

import "slices"

// fieldServers is the field of a log line that lists servers.
const fieldServers = "zookeeper.servers"

// A serverList has the servers of a client, as "host:port".
type serverList struct {
	given   []string // from the connect string, SetServers or the source
	tracked []string // from the ensemble's configuration; empty if it names none
}

// first returns the servers that are tried first.
func (s serverList) first() []string {
	if len(s.tracked) > 0 {
		return s.tracked
	}
	return s.given
}

// fallback returns the servers that are tried when all servers of first have failed.
func (s serverList) fallback() []string {
	if len(s.tracked) > 0 {
		return s.given
	}
	return nil
}

func (s serverList) equal(other serverList) bool {
	return slices.Equal(s.given, other.given) && slices.Equal(s.tracked, other.tracked)
}
