package tap_test

import (
	"encoding/binary"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework/internal/tap"
)

// A readOnlyAnswer is a handshake and what a server answers.
type readOnlyAnswer struct {
	asked    bool // for a read-only server
	answer   []byte
	want     error
	readOnly bool
}

func TestReadOnlyHandshake(t *testing.T) {
	flagged := greeting(7)
	flagged[36] = 1
	refused := binary.BigEndian.AppendUint64(make([]byte, 4), 7) // xid, zxid
	refused = append(refused, 0xff, 0xff, 0xff, 0x89)            // -119
	for name, tt := range map[string]readOnlyAnswer{
		"a read-only server":                       {true, flagged, nil, true},
		"a server with a quorum":                   {true, greeting(7), nil, false},
		"a read-only server without sessions":      {true, refused, tap.ErrNoLocalSession, false},
		"a read-only server that nobody asked for": {false, flagged, tap.ErrHandshake, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { checkReadOnlyHandshake(t, tt) })
		})
	}
}

func checkReadOnlyHandshake(t *testing.T, tt readOnlyAnswer) {
	t.Helper()
	p := &peer{t: t, tap: tap.New(tap.Config{
		MarginFor: func(time.Duration) time.Duration { return margin },
		Zxid:      new(atomic.Int64),
		MaxReply:  maxReply,
		ReadOnly:  tt.asked,
	})}
	p.dial()
	if sent := p.send(make([]byte, 44)); (sent[44] == 1) != tt.asked {
		t.Errorf("flag %d, asked for a read-only server: %v", sent[44], tt.asked)
	}
	if tt.want != nil {
		go p.server.Write(framed(tt.answer))
		if _, err := io.ReadAll(p.client); !errors.Is(err, tt.want) {
			t.Errorf("error %v, want %v", err, tt.want)
		}
		return
	}
	p.reply(tt.answer)
	if got := p.tap.ReadOnly(); got != tt.readOnly {
		t.Errorf("read-only: %v, want %v", got, tt.readOnly)
	}
	<-time.After(timeout / 2)
	p.read()
	p.write()
	if proven := !p.tap.Deadline().IsZero(); proven == tt.readOnly {
		t.Errorf("deadline %v, want one only of a server with a quorum", p.tap.Deadline())
	}
	if p.tap.Presumed().IsZero() {
		t.Error("the session is not presumed to exist")
	}
}
