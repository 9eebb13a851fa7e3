package zkserver

// DecodeFrame decodes a client's frame as the server does: as the handshake and as a
// request.
func DecodeFrame(frame []byte) error {
	_, err := parseConnect(frame)
	if _, asRequest := parseRequest(frame); asRequest == nil {
		err = nil
	}
	return err
}

// LonePassed is what the timer calls when the front end has been without a leader for long.
func LonePassed(f *Frontend) { f.lonePassed() }

// ServesReads reports whether the front end serves reads without a leader.
func ServesReads(f *Frontend) bool {
	f.server.mu.Lock()
	defer f.server.mu.Unlock()
	return f.readOnly != nil
}
