package lease

// A Participant is one contender: a holder or one that waits.
type Participant struct {
	Path     string // of its znode
	Kind     string // of the znode's name, as in "lock-"
	Session  int64  // that the znode belongs to
	Sequence int64  // its place in the order
	Holder   bool
	Revoked  bool      // another client has asked it to release; its data is gone with that
	Data     []byte    // what the contender's own side put there
	Metadata *Metadata // nil where the znode has none, as of a Curator process
}
