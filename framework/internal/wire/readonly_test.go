package wire_test

import (
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/docent-go/docent/framework/internal/wire"
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
	refused := replyOf(0, 7, proto.CodeNotReadOnly, nil)
	for name, tt := range map[string]readOnlyAnswer{
		"a read-only server":                       {true, flagged, nil, true},
		"a server with a quorum":                   {true, greeting(7), nil, false},
		"a read-only server without sessions":      {true, refused, wire.ErrNoLocalSession, false},
		"a read-only server that nobody asked for": {false, flagged, wire.ErrHandshake, false},
	} {
		runSynctest(t, name, func(t *testing.T) { checkReadOnlyHandshake(t, tt) })
	}
}

func checkReadOnlyHandshake(t *testing.T, tt readOnlyAnswer) {
	t.Helper()
	p := &peer{t: t, wire: newWire(func(c *wire.Config) { c.ReadOnly = tt.asked })}
	err := p.connect(framed(tt.answer))
	if (p.hello[44] == 1) != tt.asked {
		t.Errorf("flag %d, asked for a read-only server: %v", p.hello[44], tt.asked)
	}
	wantErr(t, "the handshake", err, tt.want)
	if tt.want != nil {
		return
	}
	if got := p.wire.Status().ReadOnly; got != tt.readOnly {
		t.Errorf("read-only: %v, want %v", got, tt.readOnly)
	}
	<-time.After(timeout / 2)
	p.read()
	p.write()
	if proven := !p.wire.Status().Deadline.IsZero(); proven == tt.readOnly {
		t.Errorf("deadline %v, want one only of a server with a quorum", p.wire.Status().Deadline)
	}
	if p.wire.Status().Presumed.IsZero() {
		t.Error("the session is not presumed to exist")
	}
}

// The connection is there for requests when the server has answered to the credentials.
func TestCredentialsPrecedeRequests(t *testing.T) {
	for name, tc := range map[string]struct {
		codes []proto.Code // of the answers to the credentials "a" and "b"
		want  error
	}{
		"accepted":                  {[]proto.Code{0, 0}, nil},
		"the first one is refused":  {[]proto.Code{proto.CodeAuthFailed}, wire.ErrCredential},
		"the second one is refused": {[]proto.Code{0, proto.CodeAuthFailed}, wire.ErrCredential},
	} {
		runSynctest(t, name, func(t *testing.T) {
			p := &peer{t: t, wire: newWire()}
			var schemes []string
			credentials := []wire.Credential{
				{Scheme: "a", Secret: []byte("1")},
				{Scheme: "b", Secret: []byte("2")},
			}
			err := p.connectWith(wire.Identification{Credentials: credentials}, func(server net.Conn) {
				greet(server)
				for _, code := range tc.codes {
					schemes = append(schemes, answerCredential(server, code))
				}
			})
			wantErr(t, "the handshake", err, tc.want)
			if want := []string{"a", "b"}[:len(tc.codes)]; !slices.Equal(schemes, want) {
				t.Errorf("the server was shown %q, want %q", schemes, want)
			}
			if open := p.wire.Status().Open; open != (tc.want == nil) {
				t.Errorf("open for requests: %v", open)
			}
		})
	}
}

// answerCredential reads a credential, answers it with the code and returns its scheme.
func answerCredential(server io.ReadWriter, code proto.Code) string {
	frame, _ := nextFrame(server)
	_, _ = server.Write(framed(replyOf(xidOf(frame), 0, code, nil)))
	d := proto.NewDecoder(frame[12:]) // behind xid, opcode and type
	return d.String()
}
