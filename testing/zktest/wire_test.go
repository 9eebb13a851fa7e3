package zktest_test

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zktest"
)

func TestHandshakeOnTheWire(t *testing.T) {
	t.Parallel()
	got := hex.EncodeToString(zktest.HandshakeRequest(10_000, 0x100000000000002, []byte{0xab, 0xcd}))
	want := strings.Join([]string{
		"0000001f",         // length
		"00000000",         // version
		"0000000000000000", // last zxid seen
		"00002710",         // timeout
		"0100000000000002", // session
		"00000002", "abcd", // password
		"00", // read-only
	}, "")
	if got != want {
		t.Errorf("request = %s; want %s", got, want)
	}

	answer := must.Get(hex.DecodeString("00000000" + "00000fa0" + "0100000000000002" + "00000002" + "abcd" + "00"))(t)
	timeout, session, password, err := zktest.ParseAnswer(answer)
	if err != nil || timeout != 4000 || session != 0x100000000000002 || !bytes.Equal(password, []byte{0xab, 0xcd}) {
		t.Errorf("answer = %d, %x, %x, %v; want 4000, 100000000000002, abcd", timeout, session, password, err)
	}
	for n := range len(answer) - 1 { // releases before 3.4 leave the last byte out
		if _, _, _, err := zktest.ParseAnswer(answer[:n]); err == nil {
			t.Errorf("answer cut to %d bytes: want an error", n)
		}
	}
}

func TestElectionGreetingNamesTheForwarder(t *testing.T) {
	t.Parallel()
	const head = "ffffffffffff0000" + "0000000000000001"
	greeting := func(address string) []byte {
		b := must.Get(hex.DecodeString(head))(t)
		return append(append(b, 0, 0, 0, byte(len(address))), address...)
	}
	got, err := zktest.Announce(9999, 54321, append(greeting("127.0.0.1:9999"), "what follows"...))
	if want := greeting("127.0.0.1:54321"); err != nil || !bytes.Equal(got, want) {
		t.Errorf("greeting = %q, %v; want %q", got, err, want)
	}
	other := greeting("127.0.0.1:8888")
	if got, err := zktest.Announce(9999, 54321, other); err != nil || !bytes.Equal(got, other) {
		t.Errorf("somebody else's greeting = %q, %v; want it unchanged", got, err)
	}
	if _, err := zktest.Announce(9999, 54321, other[:len(other)-1]); err == nil {
		t.Error("greeting cut short: want an error")
	}
	other[16] = 0xff
	if _, err := zktest.Announce(9999, 54321, other); err == nil {
		t.Error("greeting with a negative length: want an error")
	}
}

func FuzzFrames(f *testing.F) {
	f.Add(zktest.HandshakeRequest(1, 2, []byte("3")))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		body, err := zktest.ReadFrame(b)
		if err != nil {
			return
		}
		if len(body) > len(b)-4 {
			t.Fatalf("a frame of %d bytes from %d", len(body), len(b))
		}
		if _, _, password, err := zktest.ParseAnswer(body); err == nil && len(password) > len(body) {
			t.Fatalf("a password of %d bytes from %d", len(password), len(body))
		}
	})
}
