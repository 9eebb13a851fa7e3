package inspect

// A Severity says how much a finding matters.
type Severity string

// The severities, the worst first.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Info    Severity = "info"
)

// A Problem is what a finding is about.
type Problem string

// The problems.
const (
	Deadlock       Problem = "deadlock"        // owners wait for each other
	SelfWait       Problem = "self-wait"       // an owner waits for what it holds
	HeldLong       Problem = "held-long"       // a holder has held for long: see [Diagnose]
	NoSession      Problem = "no-session"      // a contender's znode belongs to no session, so it stays
	Foreign        Problem = "foreign"         // a child of a semaphore's leases that is no permit
	Mixed          Problem = "mixed"           // contenders of several formats do not exclude each other
	Counter        Problem = "counter"         // the directory's counter nears its end
	Crowd          Problem = "crowd"           // very many waiters
	NoAuth         Problem = "no-auth"         // a path that may not be read
	Unreadable     Problem = "unreadable"      // a path whose data or name docent can't read
	RevokedUnheard Problem = "revoked-unheard" // a holder was asked to release, and still holds
	ClocksDiffer   Problem = "clocks-differ"   // the servers' clock is ahead of this process's
	OldSession     Problem = "old-session"     // an owner contends in a newer session, too
	LargeListing   Problem = "large-listing"   // a listing nears what clients accept, or exceeds it
)

// NewFinding returns a finding that is told by its text alone.
func NewFinding(severity Severity, problem Problem, path, text, advice string) Finding {
	return Finding{Severity: severity, Problem: problem, Path: path, Text: text, Advice: advice}
}

// A Finding is one thing that is wrong, or may be.
type Finding struct {
	Severity Severity
	Problem  Problem
	Path     string   // of the lock or the znode; "" for a finding about several
	Text     string   // what was found, in a sentence
	Details  []string // what belongs to the text, each in a phrase
	Advice   string   // what to do about it

	// Of a Deadlock and a SelfWait:

	Parties   []Party // that wait for each other
	Behind    []Party // that wait for those
	Edges     []Edge  // between Parties
	Strength  Strength
	Confirmed bool // two snapshots show all edges, so all existed at one time
}
