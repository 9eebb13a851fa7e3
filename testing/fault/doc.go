// Package fault describes faults between a ZooKeeper client and its server, for tests.
//
// A [Rule] names frames of the protocol (by session, operation and path), the [Action] on them,
// and how often it applies. Rules are in a [Rules] set. The carrier of the frames consults it: the
// proxy of package zkproxy in front of a real server, or an embedded server. Adding a rule returns
// a [Handle], which notifies the test of the fault and ends it:
//
//	lost := proxy.Rules().Add(fault.Rule{Op: fault.Create, Path: "/locks/*", Action: fault.DropReply})
//	go client.Create("/locks/lock-", nil)
//	<-lost.Hit() // the node exists, its creator doesn't know
//
// A rule hits once unless it says otherwise, so that a client's retry meets a healthy server. No
// rule ever reorders frames. As with TCP, a frame that is held back holds back everything behind
// it on the same connection, pings included.
//
// Stability: may change.
//
// # Carrying out rules
//
// This part is for the author of such a server or proxy. Each [Frame] goes through [Rules.Match]
// once, on its arrival. An [Injection] that Match returns is the claim of one rule on this one
// frame. When the frame's turn comes, the carrier does what [Injection.Action] documents and calls
// [Injection.Commit] at the moment it takes effect. [Action.OnReply] reports whether that is the
// request's turn or its reply's. If the connection ends first, the carrier calls
// [Injection.Cancel], so that the rule can claim a later frame instead.
//
// # Concurrency
//
// Everything in this package may be called concurrently. No function blocks but [Injection.Wait].
// In a testing/synctest bubble, rules must be added inside it, because their handles hold
// channels.
package fault
