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
