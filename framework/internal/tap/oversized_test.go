package tap_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework/internal/tap"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/proto"
)

// The reply's body is skipped, and what follows it is read.
func TestAnOversizedReply(t *testing.T) {
	for limit, body := range map[int]string{3: "four", 100: strings.Repeat("a", 10*maxReply)} {
		synctest.Test(t, func(t *testing.T) {
			p := newPeer(t)
			arrived, came := p.ask(opWhoAmI, nil, limit)
			next := p.request(opExists)
			go func() {
				_, _ = p.server.Write(framed(answerTo(arrived, 0, body))) // an error is the reader's
				_, _ = p.server.Write(framed(words(int(next), 0, 1, -101)))
			}()
			must.Get(io.ReadFull(p.client, make([]byte, 20)))(t)
			if got := <-came; !errors.Is(got.err, tap.ErrTooLarge) {
				t.Errorf("%+v, want that it is too large", got)
			}
			wantAllAnswered(t, p.tap)
			if held := tap.Held(p.client); held > 1024 {
				t.Errorf("%d bytes are held", held)
			}
		})
	}
}

// A server that does not stop can't hold up what waits: the reply is noted at its head.
func TestAnOversizedReplyIsNotedBeforeItsBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		arrived, _ := p.ask(opWhoAmI, nil, 100)
		go p.server.Write(append(words(10*maxReply), arrived[:4]...))
		go p.server.Write(words(0, 1, 0, 1))
		go p.client.Read(make([]byte, 4))
		synctest.Wait()
		wantAllAnswered(t, p.tap)
	})
}

// words encodes numbers and strings as the protocol does.
func words(values ...any) (b []byte) {
	for _, v := range values {
		switch v := v.(type) {
		case int:
			b = binary.BigEndian.AppendUint32(b, uint32(v))
		case string:
			b = append(binary.BigEndian.AppendUint32(b, uint32(len(v))), v...)
		case []byte:
			b = append(b, v...)
		}
	}
	return b
}

// bodies are what servers answer, by opcode.
func bodies() map[string]struct {
	opcode int32
	body   []byte
} {
	stat := make([]byte, statLength)
	end := words(-1, []byte{1}, -1)
	return map[string]struct {
		opcode int32
		body   []byte
	}{
		"exists":       {3, stat},
		"setData":      {5, stat},
		"setACL":       {7, stat},
		"getData":      {4, words("data", stat)},
		"null data":    {4, words(-1, stat)},
		"getACL":       {6, words(2, 31, "world", "anyone", 1, "auth", "", stat)},
		"no ACL":       {6, words(0, stat)},
		"sync":         {9, words("/")},
		"getChildren2": {12, words(3, "a", "b", "bc", stat)},
		"no children":  {12, words(0, stat)},
		"create2":      {15, words("/a", stat)},
		"container":    {19, words("/a", stat)},
		"TTL":          {21, words("/a", stat)},
		"multi": {14, words(1, []byte{0}, 0, "/a", 5, []byte{0}, 0, stat, 2, []byte{0}, 0,
			13, []byte{0}, 0, -1, []byte{0}, -101, -101, end)},
		"empty multi": {14, end},
	}
}

// answered returns what comes of a request that a server answers with the body, and of its connection.
func answered(t *testing.T, opcode int32, body []byte) (came outcome, err error) {
	t.Helper()
	p := newPeer(t)
	arrived, outcomes := p.ask(proto.Opcode(opcode), nil, len(body))
	go func() {
		_, _ = p.server.Write(framed(answerTo(arrived, 0, string(body)))) // an error is the reader's
		_ = p.server.Close()
	}()
	_, err = io.ReadAll(p.client)
	return <-outcomes, err
}

func TestAReplysBody(t *testing.T) {
	for name, tc := range bodies() {
		runSynctest(t, name, func(t *testing.T) {
			for n := range len(tc.body) {
				if came, err := answered(t, tc.opcode, tc.body[:n]); !errors.Is(err, tap.ErrProtocol) || !errors.Is(came.err, tap.ErrUnanswered) {
					t.Fatalf("%d bytes of %d: %v, %+v", n, len(tc.body), err, came)
				}
			}
			for _, more := range []int{0, 1, 100} {
				if came, err := answered(t, tc.opcode, append(slices.Clone(tc.body), make([]byte, more)...)); err != nil || came.err != nil {
					t.Errorf("with %d bytes more: %v, %v", more, err, came.err)
				}
			}
		})
	}
}

func TestAReplysCountsAndLengths(t *testing.T) {
	stat := make([]byte, statLength)
	for name, tc := range map[string]struct {
		opcode int32
		body   []byte
	}{
		"a negative count of children":    {12, words(-1, stat)},
		"a count beyond the frame":        {12, words(1<<30, "a", stat)},
		"a name of negative length":       {12, words(1, -1, stat)},
		"a count of ACL entries":          {6, words(-1, stat)},
		"an ACL entry's scheme":           {6, words(1, 31, -5, stat)},
		"data of length -2":               {4, words(-2, stat)},
		"data of length 2^31-1":           {4, words(1<<31-1, stat)},
		"a result of no kind":             {14, words(15, []byte{0}, 0, "/a", stat, -1, []byte{1}, -1)},
		"a created path of length 2^31-1": {15, words(1<<31-1, stat, stat)},
	} {
		runSynctest(t, name, func(t *testing.T) {
			wantErr(t, "reply", last(answered(t, tc.opcode, tc.body)), tap.ErrProtocol)
		})
	}
}

func TestABodyIsNotReadBehindAnErrorCode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		p.respond(p.request(opExists), -101)
		p.asked = nil // so that no body is sent, either
		p.respond(p.request(opSync), -4)
		wantAllAnswered(t, p.tap)
	})
}

func TestAFrameThatAnswersNothing(t *testing.T) {
	for name, frame := range map[string][]byte{
		"no byte":                       framed(nil),
		"15 bytes":                      framed(make([]byte, 15)),
		"a negative length":             {0xff, 0xff, 0xff, 0xff},
		"a byte more than allowed":      words(maxReply+1, 99, 0, 1, 0),
		"a request not in flight":       framed(words(99, 0, 1, 0)),
		"a long one to the wire client": words(maxReply+1, 1, 0, 1, 0),
		"a negative request":            framed(words(-4, 0, 1, 0)),
		"an event without a path":       framed(words(-1, 0, 1, 0, 1, 3)),
		"an event of a long path":       framed(words(-1, 0, 1, 0, 1, 3, 9, "/")),
	} {
		runSynctest(t, name, func(t *testing.T) {
			p := newPeer(t)
			p.request(opExists)
			go p.server.Write(frame)
			wantErr(t, "reply", last(p.client.Read(make([]byte, 4))), tap.ErrProtocol)
			wantErr(t, "the fault", p.tap.Fault(), tap.ErrProtocol)
		})
	}
}

func TestOnlyEventsOfZnodesAreDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		p := &peer{t: t, tap: tap.New(tap.Config{
			MarginFor: func(time.Duration) time.Duration { return margin },
			MaxReply:  maxReply,
			OnEvent:   func(kind int32, path string) { got = append(got, fmt.Sprint(kind, path)) },
		})}
		p.reconnect()
		go func() {
			for _, kind := range []int{-2, -1, 0, 5, 7, 1, 4} {
				_, _ = p.server.Write(framed(words(-1, 0, 1, 0, kind, 3, "/a"))) // an error is the reader's
			}
			_ = p.server.Close()
		}()
		if passed, _ := io.ReadAll(p.client); len(passed) > 0 {
			t.Errorf("the wire client read %x", passed)
		}
		if want := []string{"1/a", "4/a"}; !slices.Equal(got, want) {
			t.Errorf("events %q, want %q", got, want)
		}
	})
}

func TestALargeFramesBufferIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		xid := p.request(4)
		p.reply(words(int(xid), 0, 1, 0, strings.Repeat("a", maxReply-100), make([]byte, statLength)))
		p.read()
		if held := tap.Held(p.client); held > 1024 {
			t.Errorf("%d bytes are held", held)
		}
	})
}
