package sim_test

import (
	"errors"
	"net"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
)

// bugs are, for each guarantee, what its validators have to find.
var bugs = []deliberate{
	{exclusion, "one of the clients locks another path", "has it with", func() bug { return bug{locker: of("mutex", elsewhere)} }},
	{exclusion, "readers lock another path", "__READ__", func() bug { return bug{locker: of("read", elsewhereToRead)} }},
	{exclusion, "who goes on as a reader locks another path", "__READ__", func() bug { return bug{read: elsewhereToRead} }},
	{lossFirst, "the client takes its session to last twice as long as the server", "neither lost nor released", flattering},
	{lossFirst, "a sync counts as a proof of the session", "neither lost nor released", func() bug {
		return onConnections(newCredulous, (*plan).depose)
	}},
	{lossFirst, "a lease outlives the close of its client", "Close was called", func() bug {
		return bug{locker: borrowing, plan: func(p *plan) {
			p.insist("close a client", p.timeout, 0)
		}}
	}},
	{lossFirst, "a connection loses all requests after a while", "no fault explains", func() bug {
		return onConnections(func(c net.Conn) net.Conn { return &mute{Conn: c} }, nil)
	}},
	{noOrphan, "an attempt that fails leaves a znode in the queue", "nobody wants it", func() bug { return bug{locker: of("mutex", littering)} }},
	{noOrphan, "Close does not close the session", "Close of client", func() bug {
		return onConnections(func(c net.Conn) net.Conn { return &silent{c} }, nil)
	}},
	{ownSession, "a lease is of another client's session", "and the client's is", func() bug { return bug{locker: borrowing} }},
	{grantOrder, "the server gives numbers again", "stands ahead", func() bug { return bug{harm: renumber} }},
	{monotonicFence, "the fence is the number in the znode's name", "after fence", func() bug {
		return bug{fence: func(_ *environment, l *lock.Lease) int64 { _, number, _ := ranks(l.Node()); return number + 1 }}
	}},
	{monotonicFence, "writes are not guarded", "a write to", func() bug {
		return bug{guards: func(*lock.Lease) []framework.TxnOp { return nil }}
	}},
	{boundedCalls, "Lock takes its time when its context has ended", "after its context had ended", func() bug { return bug{locker: slow} }},
	{boundedCalls, "Do waits for the end of its lease", "after fn", func() bug { return bug{do: patient} }},
	{honestAnswers, "Do does not report a loss", "was lost before fn returned", func() bug { return bug{do: hopeful} }},
	{liveness, "a waiter is never woken", "all was well", func() bug { return bug{locker: deaf} }},
	{liveness, "a waiter is not notified", "nothing is in its way", func() bug { return bug{locker: deaf} }},
	{liveness, "readers wait for one another", "nothing is in its way", func() bug { return bug{locker: of("read", lonely), plan: onlyReaders} }},
	{honestStates, "a listener is not told of every third change", "heard of", func() bug { return bug{listener: forgetful} }},
	{honestStates, "a client takes its session to last forever", "which the server has ended", flattering},
	{nothingHidden, "goroutines are left behind", "goroutines are left", leaking},
	{nothingHidden, "errors tell a secret", "tells a secret", func() bug {
		return bug{err: func(err error) error { return errors.Join(err, errors.New(secret)) }}
	}},
	{nothingHidden, "errors are none that is documented", "no documentation names", func() bug { return bug{locker: vague} }},
}

func flattering() bug {
	return onConnections(newFlatterer, nil)
}

// onConnections is a bug of connections, in schedules that are changed further.
func onConnections(wrap func(net.Conn) net.Conn, plan func(*plan)) bug {
	return bug{dialed: wrap, plan: plan}
}
