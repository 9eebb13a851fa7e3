package tap_test

import (
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework/internal/tap"
	"github.com/docent-go/docent/internal/proto"
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
		runSynctest(t, name, func(t *testing.T) { checkReadOnlyHandshake(t, tt) })
	}
}

func checkReadOnlyHandshake(t *testing.T, tt readOnlyAnswer) {
	t.Helper()
	p := &peer{t: t, tap: tap.New(tap.Config{
		MarginFor: func(time.Duration) time.Duration { return margin },
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

// TestCredentialsPrecedeWhatTheWireClientSends has the answer to the handshake reach the wire client
// only when the server has answered to the credentials.
func TestCredentialsPrecedeWhatTheWireClientSends(t *testing.T) {
	for name, tc := range map[string]struct {
		codes []int32 // of the answers to the credentials "a", "b" and "trial"
		tried []bool  // what the one on trial was told
		want  error
	}{
		"accepted":                  {[]int32{0, 0, 0}, []bool{true}, nil},
		"the second one is refused": {[]int32{0, codeRefused}, nil, tap.ErrCredential},
		"that on trial is refused":  {[]int32{0, 0, codeRefused}, []bool{false}, tap.ErrTrial},
	} {
		runSynctest(t, name, func(t *testing.T) {
			p := dialled(t)
			var tried []bool
			p.client.UseCredentials([]tap.Credential{
				{Scheme: "a", Secret: []byte("1")},
				{Scheme: "b", Secret: []byte("2")},
				{Scheme: "trial", Secret: []byte("3"), Answered: func(accepted bool) { tried = append(tried, accepted) }},
			})
			p.send(make([]byte, 44))
			var schemes []string
			var open bool // for requests
			go func() {
				_, _ = p.server.Write(framed(greeting(7))) // an error is the client's
				for _, code := range tc.codes {
					schemes = append(schemes, answerCredential(p.server, code))
				}
				synctest.Wait()
				open = p.tap.Open()
				_ = p.server.Close()
			}()
			passed, err := io.ReadAll(p.client)
			if string(passed) != string(framed(greeting(7))) || err != nil {
				t.Errorf("%x was handed on, %v", passed, err)
			}
			if want := []string{"a", "b", "trial"}[:len(tc.codes)]; !slices.Equal(schemes, want) {
				t.Errorf("the server was shown %q, want %q", schemes, want)
			}
			if open != (tc.want == nil) {
				t.Errorf("open for requests: %v", open)
			}
			if refusal := p.tap.Refusal(); !errors.Is(refusal, tc.want) || !slices.Equal(tried, tc.tried) {
				t.Errorf("refusal %v, want %v; the one on trial was told %v", refusal, tc.want, tried)
			}
		})
	}
}

// answerCredential reads a credential, answers it with the code and returns its scheme.
func answerCredential(server io.ReadWriter, code int32) string {
	frame, _ := nextFrame(server)
	reply := append(append([]byte{}, frame[:4]...), make([]byte, 8)...)
	_, _ = server.Write(framed(binary.BigEndian.AppendUint32(reply, uint32(code))))
	d := proto.NewDecoder(frame[12:]) // behind xid, opcode and type
	return d.String()
}
