package lease

// A Participant is one contender: the holder or a waiter.
type Participant struct {
	Path     string // of its znode
	Kind     string // of the znode's name, as in "lock-"
	Session  int64  // that the znode belongs to
	Sequence int64  // its place in the order
	Holder   bool
	Revoked  bool      // another client has asked it to release, which replaced its data
	Data     []byte    // the data that the contender was given
	Metadata *Metadata // nil if the znode has none, such as a Curator process's
}
