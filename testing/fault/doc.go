// Package fault is the vocabulary in which a test says what shall go wrong
// between a ZooKeeper client and its server.
//
// A [Rule] names frames of the protocol (by session, operation and path), the
// [Action] that befalls them, and how often. Rules live in a [Rules] set, which
// whoever carries the frames consults: the proxy of package zkproxy in front of
// a real server, or an embedded server. Adding a rule gives a [Handle], by which
// the test learns that the fault has happened and ends it:
//
//	lost := proxy.Rules().Add(fault.Rule{Op: fault.Create, Path: "/locks/*", Action: fault.DropReply})
//	go client.Create("/locks/lock-", nil)
//	<-lost.Hit() // the node stands, its creator doesn't know
//
// A rule hits once unless it says otherwise, so that a client's retry meets a
// healthy server. No rule ever reorders frames: what is held back holds back
// everything behind it on the same connection, pings included, as TCP does.
//
// # Carrying out rules
//
// This part is for whoever writes such a server or proxy. Each [Frame] goes
// through [Rules.Match] once, on its arrival; a [Injection] that comes back is the
// claim of one rule on this one frame. The carrier does what [Injection.Action]
// documents when the frame's turn comes ([Action.OnReply] tells whether it is the
// request's turn or its reply's) and calls [Injection.Commit] at the moment it takes
// effect. A strike whose connection ends first is given back by
// [Injection.Cancel], so that it befalls a later frame instead.
//
// # Concurrency
//
// Everything in this package may be called concurrently. No function blocks but
// [Injection.Wait]. In a testing/synctest bubble, rules must be added inside it: their
// handles hold channels.
package fault
