// Package proto is the part of ZooKeeper's protocol that the client and the test kit share:
// opcodes, error codes, Stat, frames, the handshake, and the encoding of their fields.
//
// The encoding is jute, as in zookeeper.jute of Apache ZooKeeper 3.5 and later: big-endian
// numbers, and a 4-byte length before a string, a buffer or a list. A frame is a 4-byte length and
// a body. The body of a request begins with xid and opcode, that of a reply with xid, zxid and
// code. The package knows no connection and no state.
package proto
