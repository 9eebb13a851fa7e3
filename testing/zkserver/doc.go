// Package zkserver is a ZooKeeper server in the test process. It speaks the real wire protocol,
// starts at once, runs in a testing/synctest bubble, and injects the faults of production on
// demand.
//
//	srv := zkserver.Run(t)
//	client, err := framework.NewClient(srv.Addr(), framework.WithDialer(srv.Dial))
//
// [Run] closes the server when the test has ended. Without a test, use [Start] and [Server.Close].
// [Server.Dialer] is for clients of go-zookeeper's. [Server.Listen] is for clients that connect by
// TCP, in any language.
//
// Stability: may change.
//
// # What it is not
//
// It is for tests and for trying things out. Nothing is stored: when the process ends, the znodes
// are gone. Nothing is replicated: the front ends of an ensemble are views of one state in one
// process. If the leader is isolated, no other member commits what it was sent. There are no
// quotas, no SASL and no TLS. Reconfiguration is disabled, as by default. The four-letter words have
// the lines that tools parse, with 0 for latencies and packets.
//
// # What it is
//
// Clients see the same as from ZooKeeper 3.8: results, error codes, stats, zxids, access lists,
// transactions, watches of all kinds and the order of events and replies. A test sends tens of
// thousands of random operations to both and compares. That includes undocumented behaviour. For
// example, sequence numbers don't wrap (see [WithSequenceWrap]), and checkWatches counts the
// watches of other clients, too.
//
// Where ZooKeeper leaves something open, this server makes a choice that is the same in every run.
// It lists children in no useful order. It deletes the ephemeral znodes of a session in an order
// drawn from a seed ([WithSeed]). It adds an identity after the requests sent before it. It closes
// the connection for a frame that it can't decode, even where ZooKeeper would reply with an error.
// It replies to a check outside a multi, which stops a real server.
//
// # Time
//
// All time is package time's: in a bubble, session expiry, TTLs and the removal of containers
// happen in virtual time. A session expires exactly its timeout after the server last received
// something from its client. The real server rounds that up to its next tick. The server has no
// periodic timers. It commits each decision at once, or after the time that [WithCommitTime] sets.
//
// In a bubble, use [Server.Dial], whose connections are pipes, because synctest sees neither TCP
// nor a resolver. Addresses are IP literals for that reason. Close clients and server before the
// bubble's function returns.
//
// # Ensembles
//
// With [WithFrontends] a server has several front ends. A test can delay them, cut them off from
// the leader, freeze them or have them refuse connections: see [Frontend]. A session moves when
// its client resumes it at another front end. The old connection is then closed at its next write,
// or at the leader at its next request. A request that ends the session ends it by either
// connection.
//
// By default the leader is one more member, which no client connects to and no fault harms. With
// [WithLeader] one of the front ends leads. Nothing is decided then while it or half of the front
// ends are frozen or isolated. A front end that has no leader for the sync limit ([WithSyncLimit])
// closes its connections, and serves no client until it has a leader. Once a majority has no
// leader and its members can reach each other, they elect one of them, without delay.
// [Server.Elect] starts an election at any moment before. With [WithReadOnlyMode], a front end
// without a leader serves reads.
//
// A leader that has lost its majority continues for the sync limit and one tick. From what it
// knows, it answers its own clients' reads, pings and syncs, and handshakes that resume a session.
// All that must be committed waits, new sessions included. After the others have elected another
// leader, the old one answers from a state of its own. No session ends there, although one that is
// overdue can't be resumed. Then it closes its connections, loses what waited, and follows the new
// leader as soon as it is healed. A leader that is thawed or healed after its replacement notices
// one tick later.
//
// # Faults
//
// [Server.Rules] takes rules of package fault, for single requests, replies, events and
// handshakes. [Server.Expire], Cut, Freeze and Elect act on whole sessions and servers, and
// [Frontend.Kill] on a process.
//
// # Concurrency
//
// Everything may be called concurrently. No call waits for a client or the network but
// [Server.Close], which waits for the server's goroutines to end.
package zkserver
