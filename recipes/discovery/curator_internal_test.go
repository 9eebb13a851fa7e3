package discovery

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/docent-go/docent/internal/must"
)

// testdata/curator.json has texts, each with what Curator 5.4.0 and 5.7.1 read in it: "" for an exception.
// docent reads the same, but for what is said here.
func TestTextsAreReadAsCuratorReadsThem(t *testing.T) {
	t.Parallel()
	const (
		anonymous = "unreadable: an instance has a name and an id"
		more      = "read, though Curator can't"
	)
	others := map[int]string{
		12: "OK name=web id=web-1 address=10.0.0.7 port=8080 ssl=null reg=1700000000000 type=DYNAMIC enabled=true uri=null",
		15: anonymous, 16: anonymous, 17: anonymous, 18: anonymous, 67: anonymous, 68: anonymous, 72: anonymous, 82: anonymous,
		57: "unreadable: a URI is an object",
		77: "unreadable: there is text behind it",
		50: more, 53: more, 55: more, 90: more, // of payloads without a class of Curator's, and of a URI without parts
	}
	var texts [][2]string
	must.OK(t, json.Unmarshal(must.Get(os.ReadFile("testdata/curator.json"))(t), &texts))
	for i, text := range texts {
		in, err := decode[json.RawMessage]([]byte(text[0]))
		got := ""
		if err == nil {
			got = shown(in)
		}
		switch want := others[i]; {
		case want == more && err == nil, strings.HasPrefix(want, "unreadable") && err != nil:
		case want == "" && got == strings.NewReplacer("address= ", "address=null ", "port=0", "port=null", `\0x`, "\x00x", "id=?", "id=\ufffd").Replace(text[1]):
		case want != "" && got == want:
		default:
			t.Errorf("%d: %.300s\n%q (%v), want\n%q %s", i, text[0], got, err, text[1], want)
		}
	}
	if len(texts) != 91 {
		t.Errorf("%d texts", len(texts))
	}
}

// shown returns the instance as testdata/curator.json has it.
func shown(in Instance[json.RawMessage]) string {
	orNull := func(v any) string {
		if text := fmt.Sprint(v); text != "" && text != "0" {
			return text
		}
		return "null"
	}
	uri := "null"
	if in.URI != nil {
		uri = fmt.Sprint(len(in.URI))
	}
	return fmt.Sprintf("OK name=%s id=%s address=%s port=%s ssl=%s reg=%d type=%v enabled=%t uri=%s",
		in.Name, in.ID, orNull(in.Address), orNull(in.Port), orNull(in.SSLPort), in.Registered.UnixMilli(), in.Kind, !in.Disabled, uri)
}
