// Package hostile has no code of its own, only tests. They run a client, with tree watches, caches,
// elections and locks on it, against a ZooKeeper whose replies and events a generator changes: field
// by field, or as whole frames. All runs in one bubble of virtual time. A script of bytes decides
// what is changed and what the client does.
//
// A call has to return when its context ends. At a server that has done no harm, it has to succeed on
// the first connection. When the server behaves well again, the client and its recipes have to
// recover by themselves. Nothing may spin, and Close has to leave nothing.
//
// HOSTILE_MINUTES=45 HOSTILE_FIRST=1000 runs random scripts from that seed on. HOSTILE_SEED=7 replays
// one. In FuzzHostileServer the fuzzing of go test writes the script; make fuzz runs it, too.
package hostile
