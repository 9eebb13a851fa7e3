package zkserver

// A Transaction is what the leader has decided on, as [WithObserver] tells it. One
// without changes is a request that was refused, or the beginning or end of a
// session.
type Transaction struct {
	Zxid     int64
	Changes  []Change
	Began    int64 // the session that it begins, 0 for none
	Ended    int64 // the session that it ends, 0 for none
	ByClient bool  // that session's client has asked for its end
	By       int64 // the session of the client that has asked for it; 0 for the server
}

// A Change is one step of a [Transaction].
type Change struct {
	Kind  ChangeKind
	Path  string
	Owner int64  // of a node that was created: the session it belongs to, as in a stat
	Data  []byte // that was written; not to be changed
}

// A ChangeKind says what a [Change] does.
type ChangeKind int

// The kinds of changes.
const (
	Created ChangeKind = iota + 1
	Deleted
	DataSet
	ACLSet
	NothingSet // a check in a transaction, which has held
)

// WithObserver calls fn with every transaction, in their order, once the leader has decided on it
// and before any client is notified. fn runs with the server locked: it must be quick and must not
// call the server.
func WithObserver(fn func(Transaction)) Option {
	return option(func(c *config) { c.observer = fn })
}

// observe tells the observer of a decision.
func (s *Server) observe(m *commit) {
	if s.config.observer == nil {
		return
	}
	x := Transaction{Zxid: m.txn.zxid, Ended: m.ended, ByClient: m.ended != 0 && m.origin != nil}
	if m.origin != nil && m.origin.session != nil {
		x.By = m.origin.session.id
	}
	if m.opened != nil {
		x.Began = m.opened.id
	}
	for i := range m.txn.changes {
		c := &m.txn.changes[i]
		x.Changes = append(x.Changes, Change{Kind: c.kind, Path: c.path, Owner: c.owner, Data: c.data})
	}
	s.config.observer(x)
}
