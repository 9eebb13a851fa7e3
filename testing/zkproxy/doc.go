// Package zkproxy puts a proxy that understands ZooKeeper's frames between a client
// under test and a server, a real one over TCP in the first place, so that a test can have any request, reply
// or watch event go wrong at will.
//
// One [Proxy] stands in front of one server; a client is given [Proxy.Addr]
// instead of the server's address. In a testing/synctest bubble, where there is no TCP,
// a proxy of [StartPipe] does the same in front of an embedded server, and the
// client is given [Proxy.Dial] as well. Faults come in two kinds. Those of single
// frames are rules of package fault, added to [Proxy.Rules]:
//
//	proxy := zkproxy.Run(t, server.Addr())
//	lost := proxy.Rules().Add(fault.Rule{Op: fault.Create, Path: "/locks/*", Action: fault.DropReply})
//
// Those of the whole network or server are methods: [Proxy.Cut], [Proxy.Blackhole],
// [Proxy.Refuse], [Proxy.Hang], which [Proxy.Heal] ends, and [Proxy.SetLatency].
//
// # What a fault does not do
//
// Nothing but a cut ever loses a byte: what is withheld by a hold, a blackhole or a
// hang is late, as it is when TCP sends again after an outage, and arrives in order
// once the fault ends. The end of a connection queues behind the bytes before it:
// while the way to the client is blackholed, the client doesn't see the server
// close. Backpressure is TCP's: a direction that is withheld takes in 1024 frames
// (or pieces of 64 KiB of larger ones) and what the kernel buffers, and then no
// more.
//
// The proxy reads frames leniently, and looks no further into one than 64 KiB: a rule
// doesn't see what stands behind them in a large transaction. Connections that don't begin with a handshake,
// such as four-letter words, pass through as bytes: rules don't see them, the
// faults of the whole network befall them too. TLS can't be looked into either.
//
// # The log
//
// The proxy keeps every request that it has received, for tests that count
// operations or check their order: [Proxy.Requests], [Proxy.Count].
//
// # Concurrency
//
// All methods may be called concurrently. None blocks for longer than a moment;
// [Proxy.Close] waits for the proxy's goroutines, none of which anything can hold
// up.
package zkproxy
