package history

// A Kind says what a [Record] tells.
type Kind string

// The kinds of records.
const (
	Granted  Kind = "granted"  // a lease was got
	Standing Kind = "standing" // it was seen to stand
	Released Kind = "released" // it was given back
	Lost     Kind = "lost"     // its loss was observed
	Counted  Kind = "counted"  // an owner asked how many leases it has
	Written  Kind = "written"  // something was written to a register under it
	Seen     Kind = "seen"     // a register was read under it
	Failed   Kind = "failed"   // an attempt got no lease
)

// A Record is one line of what a client tells. Which fields are set depends on its kind.
type Record struct {
	Kind    Kind      `json:"k"`
	Client  string    `json:"c,omitempty"` // the process, or what else has one session at a time
	Lease   string    `json:"id,omitempty"`
	Model   string    `json:"m,omitempty"`
	Group   string    `json:"g,omitempty"` // of locks that are checked together
	Owner   string    `json:"o,omitempty"`
	Session int64     `json:"s,omitempty"` // that the lease is bound to; 0 if that isn't certain
	Shared  bool      `json:"sh,omitempty"`
	Locks   []LockRef `json:"st,omitempty"`

	Call   int64 `json:"t0,omitempty"` // before the operation
	Return int64 `json:"t1,omitempty"` // after it
	Alive  int64 `json:"a,omitempty"`  // the last moment at which the lease is known to have been held

	Count    int     `json:"n,omitempty"`
	Register string  `json:"r,omitempty"`
	Outcome  Outcome `json:"out,omitempty"`
	Version  int64   `json:"v,omitempty"` // of the register, by the write or the read
	Fence    int64   `json:"f,omitempty"` // written or read
	Note     string  `json:"note,omitempty"`
}

// A LockRef is one lock that a lease is of, and its fence there. A Multi's lease has
// several.
type LockRef struct {
	Lock  string `json:"l"`
	Fence int64  `json:"f"`
}

// An Outcome is what became of a write to a register.
type Outcome string

// The outcomes of writes.
const (
	Accepted Outcome = "accepted"
	Refused  Outcome = "refused"
	Unknown  Outcome = "unknown" // it may have been accepted
)
