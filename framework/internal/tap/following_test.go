package tap_test

import (
	"testing"
	"testing/synctest"

	"github.com/docent-go/docent/framework/internal/tap"
)

// transact sends a transaction whose first operation is on the path, and returns its number.
func (p *peer) transact(path string) int32 {
	p.t.Helper()
	p.xid++
	p.send(words(int(p.xid), 14, 13, []byte{0}, -1, path, -1, -1, []byte{1}, -1))
	return p.xid
}

// A transaction of another caller begins with the path of a create in flight.
func TestATransactionIsNotTakenForACreate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		f := p.tap.FollowCreate("/a")
		f.Begin()
		before := p.transact("/a")
		select {
		case <-f.Sent():
			t.Error("the transaction is taken for the create")
		default:
		}
		xid, _ := p.create("/a", 1)
		after := p.transact("/a")
		failed := words(-1, []byte{0}, -101, -101, -1, []byte{1}, -1)
		p.reply(words(int(before), 0, 70, 0, failed))
		p.reply(createdReply(xid, 0, "/a", 1))
		p.reply(words(int(after), 0, 77, 0, failed))
		if st, ok := f.End(); !ok || st.Czxid != 1 {
			t.Errorf("%+v, %v, want what the create's reply had", st, ok)
		}
	})
}

// Of creates of one path each is told of its own, whatever the order of the replies' paths.
func TestCreatesOfOnePathAreFollowedOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		follow := func() (f *tap.Following, begun <-chan struct{}) {
			f, done := p.tap.FollowCreate("/a-"), make(chan struct{})
			go func() {
				f.Begin()
				close(done)
			}()
			synctest.Wait()
			return f, done
		}
		begins := func(begun <-chan struct{}) bool {
			synctest.Wait()
			select {
			case <-begun:
				return true
			default:
				return false
			}
		}
		first, firstBegun := follow()
		second, secondBegun := follow()
		if !begins(firstBegun) || begins(secondBegun) {
			t.Fatal("the second begins before the first has been sent")
		}
		firstXid, _ := p.create("/a-", 2)
		if !begins(secondBegun) {
			t.Fatal("the first has been sent, and the second does not begin")
		}
		third, thirdBegun := follow()
		secondXid, _ := p.create("/a-", 2)
		if !begins(thirdBegun) {
			t.Fatal("the third does not begin")
		}
		fourth, fourthBegun := follow()
		third.End() // it was never sent
		if !begins(fourthBegun) {
			t.Fatal("the fourth does not begin")
		}
		p.reply(createdReply(firstXid, 0, "/a-1", 11))
		p.reply(createdReply(secondXid, 0, "/a-2", 22))
		for f, want := range map[*tap.Following]int64{first: 11, second: 22} {
			if st, ok := f.End(); !ok || st.Czxid != want {
				t.Errorf("%+v, %v, want czxid %d", st, ok, want)
			}
		}
		if st, ok := fourth.End(); ok {
			t.Errorf("the fourth was not sent, and has %+v", st)
		}
	})
}

func TestTheStatOfACreateWithATTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		f := p.tap.FollowCreate("/a")
		f.Begin()
		p.xid++
		p.send(words(int(p.xid), 21, "/a", "", 0, 5, 0, 1000))
		p.reply(createdReply(p.xid, 0, "/a", 3))
		if st, ok := f.End(); !ok || st.Czxid != 3 {
			t.Errorf("%+v, %v", st, ok)
		}
	})
}
