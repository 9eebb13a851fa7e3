package zktest

import (
	"encoding/binary"
	"fmt"
	"io"
	"strings"
)

// maxAddress bounds the address in an election's greeting.
const maxAddress = 1 << 10

// announce returns the greeting for a link of the election: it makes the dialing
// member announce port instead of the one that it listens on.
//
// Of two members, only the one with the higher number keeps a connection of the
// election that it has dialed. Called by a lower one it hangs up and calls back,
// at the address that the greeting named: without this it would call past the
// forwarders.
func announce(member peer, port int) handshake {
	return func(r io.Reader) ([]byte, error) {
		const fixed = 8 + 8 + 4 // version, member's number, length of the address
		head := make([]byte, fixed)
		if _, err := io.ReadFull(r, head); err != nil {
			return nil, err
		}
		n := binary.BigEndian.Uint32(head[16:])
		if n > maxAddress {
			return nil, fmt.Errorf("zktest: election address of %d bytes: must have at most %d", n, maxAddress)
		}
		address := make([]byte, n)
		if _, err := io.ReadFull(r, address); err != nil {
			return nil, err
		}
		named := strings.ReplaceAll(string(address), loopback(member.election), loopback(port))
		head = binary.BigEndian.AppendUint32(head[:16], uint32(len(named)))
		return append(head, named...), nil
	}
}
