package wire_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/docent-go/docent/framework/internal/wire"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/proto"
)

// The reply's body is skipped, and what follows it is read. Its length is learned nevertheless: the next reads are
// expected to be as long.
func TestAnOversizedReply(t *testing.T) {
	for limit, body := range map[int]string{3: "four", 100: strings.Repeat("a", 10*maxReply)} {
		synctest.Test(t, func(t *testing.T) {
			p := newPeer(t)
			arrived, came := p.ask(proto.OpGetData, nil, limit)
			next := p.request(proto.OpExists)
			go func() {
				_, _ = p.server.Write(framed(answerTo(arrived, 0, body))) // an error is the reader's
				_, _ = p.server.Write(framed(words(int(next), 0, 1, -101)))
			}()
			if got := <-came; !errors.Is(got.err, wire.ErrTooLarge) {
				t.Errorf("%+v, want that it is too large", got)
			}
			synctest.Wait()
			wantAllAnswered(t, p.wire)
			wantErr(t, "the fault", p.wire.Status().Fault, nil)
			if n := p.wire.Expected(proto.OpGetData); n < len(body)*9/10 {
				t.Errorf("replies are expected to have %d bytes after one of %d", n, len(body))
			}
		})
	}
}

// A server that does not stop can't hold up what waits: the reply is noted at its head.
func TestAnOversizedReplyIsNotedBeforeItsBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		arrived, _ := p.ask(proto.OpWhoAmI, nil, 100)
		must.Get(p.server.Write(append(words(10*maxReply), arrived[:4]...)))(t)
		must.Get(p.server.Write(words(0, 1, 0, 1)))(t)
		synctest.Wait()
		wantAllAnswered(t, p.wire)
	})
}

func TestAFrameThatAnswersNothing(t *testing.T) {
	for name, frame := range map[string][]byte{
		"15 bytes":                framed(make([]byte, 15)),
		"a negative length":       {0xff, 0xff, 0xff, 0xff},
		"a request not in flight": framed(words(99, 0, 1, 0)),
		"a long event":            words(maxReply+17, -1, 0, 1, 0),
		"a long pong":             words(1<<30, -2, 0, 1, 0),
		"a negative request":      framed(words(-4, 0, 1, 0)),
		"an event without a path": framed(words(-1, 0, 1, 0, 1, 3)),
		"an event of a long path": framed(words(-1, 0, 1, 0, 1, 3, 9, "/")),
		"an event of no path":     framed(words(-1, 0, 1, 0, 1, 3, "a")),
	} {
		runSynctest(t, name, func(t *testing.T) {
			p := newPeer(t)
			p.request(proto.OpExists)
			go p.server.Write(append(frame, make([]byte, 16)...))
			synctest.Wait()
			wantErr(t, "the fault", p.wire.Status().Fault, wire.ErrProtocol)
		})
	}
}

func TestOnlyEventsOfZnodesAreDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		p := &peer{t: t, wire: newWire(func(c *wire.Config) {
			c.OnEvent = func(kind int32, path string) { got = append(got, fmt.Sprint(kind, path)) }
			c.OnDown = func() { got = append(got, "down") }
		})}
		p.reconnect()
		for _, kind := range []int{-2, -1, 0, 5, 7, 1, 4} {
			p.reply(words(-1, 0, 1, 0, kind, 3, "/a"))
		}
		p.server.Close()
		synctest.Wait()
		if want := []string{"1/a", "4/a", "down"}; !slices.Equal(got, want) {
			t.Errorf("events %q, want %q", got, want)
		}
	})
}

// A server that sends the first half of a frame's body, and then the second.
func TestABodyMayArriveInTwoReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		for n := range proto.ReplyHeadSize + proto.StatSize {
			xid := p.request(proto.OpExists)
			frame := framed(replyOf(xid, 0, 0, make([]byte, proto.StatSize)))
			must.Get(p.server.Write(frame[:n+1]))(t)
			must.Get(p.server.Write(frame[n+1:]))(t)
			synctest.Wait()
			if !p.wire.Status().Waiting.IsZero() {
				t.Fatalf("the reply in pieces of %d and the rest is not seen", n+1)
			}
		}
	})
}
