package main

import "strings"

// docent is this module's name among the contenders.
const docent = "docent"

// Work is what an operation asks of the servers.
type work struct {
	writes   float64 // that change znodes, a transaction counts as one
	alone    float64 // of these writes: no other one is on its way, so that none shares its commit
	members  float64 // operations of transactions
	reads    float64
	sessions float64 // opened and closed
	kilobyte float64 // of replies
}

// parts returns the amounts that have a cost each.
func (w work) parts() []float64 {
	return []float64{w.writes, w.alone, w.members, w.reads, w.sessions, w.kilobyte}
}

// partNames are those of parts.
func partNames() []string {
	return []string{"a write", "… that no other one accompanies, more", "a member of a transaction", "a read", "a session", "1,000 bytes of replies"}
}

// readParts says which of the parts one server does alone.
func readParts() []bool { return []bool{false, false, false, true, false, true} }

func (w work) requests() float64 { return w.writes + w.reads + w.sessions*requestsPerSession }

const (
	requestsPerSession = 2.0  // the handshake and the close
	znodesPerDirectory = 100. // of the bench's tree
)

// workOf returns what the model knows of an operation of a curve, and false for what it doesn't
// know: other libraries, and the locks of new directories.
func workOf(m measurement) (work, bool) {
	size := float64(m.size)
	w := work{writes: writesPerLock, reads: readsPerLock, kilobyte: m.columns[bytesInColumn] / 1000}
	switch m.contender + " " + m.curve {
	case "docent waiters":
		w.alone = 1 // the release that hands on
	case "docent paths":
		w = w.inNewDirectories(m)
		w.alone = w.writes
	case "docent held":
		w.reads += readsPerHold
		w = w.inNewDirectories(m)
		w.alone = w.writes
	case "wire paths":
		w.alone = writesPerLock
	case "docent sessions":
		w.alone, w.reads, w.sessions = 1, readsPerLock+readsPerWait, 1
	case "docent readers": // readers of one client share listings
		w.reads = min(readsPerLock, m.columns[requestsColumn]-writesPerLock)
	case "wire readers":
		if m.columns[requestsColumn] > 1.2*w.requests() { // each reader has made the directory first
			return work{}, false
		}
	case "docent multi":
		w.alone, w.members, w.reads = writesPerLock, writesPerLock*size, readsPerLock*size
	case "wire multi":
		w.writes, w.reads = m.columns[requestsColumn], 0 // it makes the directories first
		w.alone, w.members = w.writes, writesPerLock*size
	case "docent cache", "wire cache":
		w.writes, w.reads = 0, size+size/znodesPerDirectory
	default:
		return work{}, false
	}
	return w, true
}

// inNewDirectories adds the directories that the measured locks have made, by their requests.
func (w work) inNewDirectories(m measurement) work {
	made := max(0, (m.columns[requestsColumn]-w.requests())/(writesPerName+readsPerName))
	w.writes += made * writesPerName
	w.reads += made * readsPerName
	return w
}

// isFirst reports whether the locks may be of directories that the run makes, which cost more, and
// whose number the model doesn't know.
func isFirst(m measurement) bool {
	return m.curve == "paths" && m.size > 100 || m.curve == "held" && m.size > 3_000
}

// isLong reports whether the clients wait or hold for so long in a run that they send pings, or watch
// the znodes that they hold. Readers are left out, too: how many share a listing varies.
func isLong(m measurement) bool {
	most := map[string]int{"waiters": 3_000, "sessions": 100, "multi": 300, "readers": 0}
	size, bounded := most[m.curve]
	return bounded && m.size > size
}

// modeOf returns the servers of a setting. Their processors do the same with and without a flush.
func modeOf(setting string) string {
	mode, _, _ := strings.Cut(setting, ",")
	return mode
}

func isFlushed(setting string) bool { return strings.HasSuffix(setting, ", fsync") }
