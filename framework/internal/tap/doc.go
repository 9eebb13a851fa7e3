// Package tap reads, and sometimes completes, the frames between the wire client and its sockets.
//
// The wire client does not report the negotiated session timeout, or when a request was sent. It
// does not report which requests a server has answered. Of a create's reply it returns only the
// path. A [Tap] reads all that in the frames. It also completes a few frames before they are sent,
// because the protocol can do more than the wire client asks for:
//
//   - a create is sent as create2 (or createContainer), whose reply has the new znode's Stat;
//   - if a read is to leave a watch, it gets its watch flag here. The wire client then knows of no
//     watches, so it keeps no channel that it cannot remove. After a reconnection it re-sends no
//     watch with a zxid that may hide events.
//
// A Tap also corrects how the wire client handles sockets. The handshake has one deadline and a
// length limit. A failed write closes the socket, and the reader returns the failure. The client
// can close a socket from outside.
//
// One Tap serves one session: all connections that carry it, one after another.
//
// The frame layout is ZooKeeper's jute encoding, as in zookeeper.jute of Apache ZooKeeper 3.5 and
// later. A frame has a 4-byte length. Then a request has xid and opcode, and a reply has xid, zxid
// and error, all big-endian.
package tap
