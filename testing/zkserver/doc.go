// Package zkserver is a ZooKeeper that lives in the test process: it speaks the real
// wire protocol, starts at once, runs in a testing/synctest bubble, and does on demand
// what goes wrong in production.
//
//	srv := zkserver.Run(t)
//	client, err := framework.NewClient(srv.Addr(), framework.WithDialer(srv.Dial))
//
// [Run] closes the server when the test has ended; without a test, use [Start] and
// [Server.Close]. [Server.Dialer] is for clients of go-zookeeper's, and [Server.Listen] for those that come
// by TCP, in any language.
//
// # What it is not
//
// It is for tests and for trying things out. Nothing is stored: when the process ends,
// so do the nodes. Nothing is replicated: the front ends of an ensemble are views of
// one state in one process. What an isolated leader has been sent is never
// committed by another. There are no quotas, no SASL, no TLS and no reconfiguration.
//
// # What it is
//
// What clients see is what ZooKeeper 3.8 shows them: results, error codes, stats, zxids,
// access lists, transactions, watches of all kinds and the order of events and replies.
// A test sends tens of thousands of random operations to both and compares. That
// includes behaviour that is not documented, such as sequence numbers, which don't
// wrap (see [WithSequenceWrap]), and checkWatches, which also counts what others watch.
//
// Where ZooKeeper leaves something open, this server takes a choice that is the same in
// every run: children are listed in no useful order, the ephemeral nodes of a session
// go in an order that is drawn from a seed ([WithSeed]), and an identity is added behind
// the requests sent before it. Frames that can't be decoded close the connection, also where ZooKeeper
// would answer with an error. A check that is not part of a multi, which stops the real
// server, is answered.
//
// # Time
//
// All time is package time's: in a bubble, session expiry, TTLs and the removal of
// containers happen in virtual time. A session expires when exactly its timeout has
// passed since the server has last heard of its client; the real server rounds that
// up to its next tick. The server has no periodic timers. What it decides is
// committed at once; [WithCommitTime] has it take its time.
//
// In a bubble, use [Server.Dial], whose connections are pipes: TCP is not seen by
// synctest, and neither is a resolver (addresses are IP literals for that reason).
// Close clients and server before the bubble's function returns.
//
// # Ensembles
//
// With [WithFrontends] a server has several front ends, which can be held back, cut off
// from the leader, frozen or made to refuse connections: see [Frontend]. A session
// moves when its client resumes it at another one; the old connection is then closed
// at its next write, and at the leader at its next request. A request that ends the
// session ends it by either.
//
// The leader is a further member that no client connects to, and can't be harmed, but
// with [WithLeader] one of the front ends leads. Nothing is decided then while it
// or half of the front ends are frozen or isolated. A front end that is without its
// leader for the sync limit ([WithSyncLimit]) closes its connections and serves nobody
// until it has one; as soon as a majority is so far, and can reach each other, they
// elect one of them, without delay. [Server.Elect] has them do so at any moment before.
// With [WithReadOnlyMode], a front end that finds no leader serves reads meanwhile.
//
// A leader that has lost its majority goes on for the sync limit and a tick more. It
// answers its own clients' reads, pings and syncs, and handshakes that resume a
// session, from what it knows; whatever has to be committed waits, new sessions
// among them. Once the others have elected another, it does so from a past of its own,
// in which no session ends, although one that it hasn't heard of for its timeout can't be
// resumed. Then it closes its connections, what waited is lost, and it
// follows the new leader as soon as it is healed. A frozen one that goes on after
// it has been succeeded, and one that is healed, notice after a tick.
//
// # Faults
//
// [Server.Rules] takes rules of package fault, which befall single requests, replies,
// events and handshakes. [Server.Expire], Cut, Freeze and Elect befall all.
//
// # Concurrency
//
// Everything may be called concurrently, and no call waits for a client or the network
// but [Server.Close], which waits for the server's goroutines to end.
package zkserver
