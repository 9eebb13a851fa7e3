// Package tap stands between the wire client and its sockets and reads the
// frames that pass.
//
// The wire client tells neither the negotiated session timeout nor when a
// request left, which requests a server has answered, or what a create's reply
// says beside the path. All of that passes by in the frames, so a [Tap] reads
// it there. It also completes a few frames on their way out, where the protocol
// can do more than the wire client asks for:
//
//   - a create is sent as create2 (or createContainer), whose reply carries the
//     new znode's Stat;
//   - a read that shall leave a watch gets its watch flag here. The wire client
//     then knows of no watches, so it re-sends none after a reconnection with a
//     zxid that may hide events, and keeps no channel that it cannot remove.
//
// And it mends how the wire client handles sockets: the handshake has one
// deadline and a length limit, a failed write closes the socket and surfaces
// through the reader, and a socket can be closed from outside.
//
// One Tap serves one session: all connections that carry it, one after another.
//
// The frame layout is ZooKeeper's jute encoding, as in zookeeper.jute of Apache
// ZooKeeper 3.5 and later: a 4-byte length, then for requests xid and opcode,
// for replies xid, zxid and error, all big-endian.
package tap
