package proto

// PasswordSize is the length of a session's password in bytes.
const PasswordSize = 16

// A ConnectRequest is a client's handshake.
type ConnectRequest struct {
	Zxid     int64 // the last that the client has seen
	Timeout  int32 // of the session, in milliseconds
	Session  int64 // 0 for a new one
	Password []byte
	ReadOnly bool // a server without a quorum will do
	Old      bool // the handshake ends before ReadOnly, as before ZooKeeper 3.4
}

// ConnectRequest takes a client's handshake.
func (d *Decoder) ConnectRequest() ConnectRequest {
	d.Int32() // protocol version
	r := ConnectRequest{Zxid: d.Int64(), Timeout: d.Int32(), Session: d.Int64(), Password: d.Bytes()}
	r.Old = d.err == nil && len(d.rest) == 0
	if !r.Old {
		r.ReadOnly = d.Bool()
	}
	return r
}

// Frame returns the handshake as it is sent.
func (r ConnectRequest) Frame() []byte {
	e := NewEncoder()
	e.Int32(0) // protocol version
	e.Int64(r.Zxid)
	e.Int32(r.Timeout)
	e.Int64(r.Session)
	e.Bytes(r.Password)
	if !r.Old {
		e.Bool(r.ReadOnly)
	}
	return e.Frame()
}

// A ConnectReply is a server's answer to a handshake.
type ConnectReply struct {
	Timeout  int32 // as the server grants it, in milliseconds
	Session  int64 // 0 if the session has expired: the rest means nothing then
	Password []byte
	ReadOnly bool // the server has no quorum
	Old      bool // the answer ends before ReadOnly
}

// ConnectReply takes a server's answer to a handshake.
func (d *Decoder) ConnectReply() ConnectReply {
	d.Int32() // protocol version
	r := ConnectReply{Timeout: d.Int32(), Session: d.Int64(), Password: d.Bytes()}
	r.Old = d.err == nil && len(d.rest) == 0
	if !r.Old {
		r.ReadOnly = d.Bool()
	}
	return r
}

// Frame returns the answer as it is sent.
func (r ConnectReply) Frame() []byte {
	e := NewEncoder()
	e.Int32(0) // protocol version
	e.Int32(r.Timeout)
	e.Int64(r.Session)
	e.Bytes(r.Password)
	if !r.Old {
		e.Bool(r.ReadOnly)
	}
	return e.Frame()
}
