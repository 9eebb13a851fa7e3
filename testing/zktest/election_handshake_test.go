package zktest_test

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zktest"
)

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
