// Package zkproxy is a proxy that understands ZooKeeper's frames, for tests. It runs between a
// client under test and a server, and can fail any request, reply or watch event.
//
// One [Proxy] is in front of one server; a client is given [Proxy.Addr] instead of the server's
// address. In a testing/synctest bubble, where there is no TCP, [StartPipe] starts a proxy in
// front of an embedded server. The client is then given [Proxy.Dial] as well. Faults come in two
// kinds. Faults of single frames are rules of package fault, added to [Proxy.Rules]:
//
//	proxy := zkproxy.Run(t, server.Addr())
//	lost := proxy.Rules().Add(fault.Rule{Op: fault.Create, Path: "/locks/*", Action: fault.DropReply})
//
// Faults of the whole network or server are methods: [Proxy.Cut], [Proxy.Blackhole],
// [Proxy.Refuse], [Proxy.Hang], which [Proxy.Heal] ends, and [Proxy.SetLatency].
//
// Stability: may change.
//
// # What a fault does not do
//
// Only a cut loses bytes. A hold, a blackhole or a hang withholds bytes: these are late, as
// when TCP sends again after an outage. They arrive in order once the fault ends. The end of a connection
// queues behind the bytes before it: while the way to the client is blackholed, the client doesn't
// see the server close. Backpressure is TCP's: a direction that is withheld takes in 1024 frames
// (or pieces of 64 KiB of larger ones) and what the kernel buffers, and then no more.
//
// The proxy reads frames leniently, and looks no further into one than 64 KiB. A rule doesn't see
// what is behind them in a large transaction. Connections that don't begin with a handshake, such
// as four-letter words, pass through as bytes. Rules don't see them, but the faults of the whole
// network apply to them too. The proxy can't look into TLS either.
//
// # The log
//
// The proxy keeps every request that it has received, for tests that count operations or check
// their order: [Proxy.Requests], [Proxy.Count].
//
// # Concurrency
//
// All methods may be called concurrently. None blocks for longer than a moment. [Proxy.Close]
// waits for the proxy's goroutines, none of which anything can hold up.
package zkproxy
