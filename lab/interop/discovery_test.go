package interop_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/recipes/node"
	"github.com/docent-go/docent/testing/zktest"
)

// A place is the Go form of the Java class of payloads.
type place struct {
	ID       string            `json:"id"`
	Name     string            `json:"name"`
	Metadata map[string]string `json:"metadata"`
}

const placeClass = "DiscoveryDriver$Place"

// javasTime is the time of all instances, as the driver has it.
const javasTime int64 = 1795319723988

func registry[T any](t testing.TB, c *framework.Client, base string, opts ...discovery.Option) *discovery.Registry[T] {
	t.Helper()
	r := must.Get(discovery.New[T](c, base, opts...))(t)
	t.Cleanup(func() {
		if err := r.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return r
}

func mustRegister[T any](t testing.TB, r *discovery.Registry[T], in discovery.Instance[T]) *discovery.Registration[T] {
	t.Helper()
	in.Name, in.Address, in.Registered = "web", "10.0.0.1", time.UnixMilli(javasTime)
	reg := must.Get(r.Register(in))(t)
	must.OK(t, reg.Await(patient(t)))
	return reg
}

// queried returns what Java lists by the command, in order.
func queried(t testing.TB, theirs *actor, words ...string) []string {
	t.Helper()
	var all []string
	for _, word := range theirs.must(t, words...) {
		text := must.Get(base64.StdEncoding.DecodeString(word))(t)
		all = append(all, string(text))
	}
	slices.Sort(all)
	return all
}

// Java reads all that docent writes: by query and from its cache.
func TestCuratorReadsOurInstances(t *testing.T) {
	t.Parallel()
	path, c, theirs := pathOf(t), newClient(t), newActor(t, curatorDiscovery)
	spring := discovery.Instance[place]{ID: "i1", Port: 80, Payload: place{"application-1", "web", map[string]string{"zone": "eu"}}}
	own := registry[place](t, c, path+"/own", discovery.WithClass(placeClass), discovery.WithDisabledField())
	mustRegister(t, own, spring)
	spring.ID, spring.Disabled, spring.Kind = "i2", true, discovery.Permanent
	mustRegister(t, own, spring)
	want := []string{
		fmt.Sprintf("i1|10.0.0.1|80|null|application-1/web/{zone=eu}|%d|DYNAMIC|true|null", javasTime),
		fmt.Sprintf("i2|10.0.0.1|80|null|application-1/web/{zone=eu}|%d|PERMANENT|false|null", javasTime),
	}
	for _, command := range []string{"query", "cached"} {
		if got := queried(t, theirs, command, path+"/own", "place", "web"); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
	if got := theirs.must(t, "names", path+"/own", "place"); !slices.Equal(got, []string{"web"}) {
		t.Errorf("names %v", got)
	}

	maps := registry[map[string]string](t, c, path+"/map") // without a class, which a Map does without
	mustRegister(t, maps, discovery.Instance[map[string]string]{ID: "i1", SSLPort: 443, Kind: discovery.Static, Payload: map[string]string{"zone": "eu"}})
	want = []string{fmt.Sprintf("i1|10.0.0.1|null|443|{zone=eu}|%d|STATIC|true|null", javasTime)}
	if got := queried(t, theirs, "query", path+"/map", "map", "web"); !slices.Equal(got, want) {
		t.Errorf("a map: %q, want %q", got, want)
	}
	texts := registry[string](t, c, path+"/text")
	mustRegister(t, texts, discovery.Instance[string]{ID: "i1", Port: 80, Payload: "eu<&>", URI: []discovery.URIPart{
		{Value: "scheme", Variable: true}, {Value: "://"}, {Value: "address", Variable: true},
	}})
	want = []string{fmt.Sprintf("i1|10.0.0.1|80|null|eu<&>|%d|DYNAMIC|true|http://10.0.0.1", javasTime)}
	if got := queried(t, theirs, "query", path+"/text", "object", "web"); !slices.Equal(got, want) {
		t.Errorf("a string: %q, want %q", got, want)
	}
	reg := mustRegister(t, texts, discovery.Instance[string]{ID: "i2"})
	zktest.Eventually(t, generous, "two in Java's cache", func() bool { return len(queried(t, theirs, "cached", path+"/text", "object", "web")) == 2 })
	must.OK(t, reg.Close(t.Context()))
	zktest.Eventually(t, generous, "one in Java's cache", func() bool { return len(queried(t, theirs, "cached", path+"/text", "object", "web")) == 1 })
}

// The outcomes that TestTextsAreReadAsCuratorReadsThem compares docent's with are those of this Curator.
func TestCuratorReadsTheTextsAsRecorded(t *testing.T) {
	t.Parallel()
	theirs := newActor(t, curatorDiscovery)
	var texts [][2]string
	must.OK(t, json.Unmarshal(must.Get(os.ReadFile("../../recipes/discovery/testdata/curator.json"))(t), &texts))
	for i, text := range texts {
		got := ""
		if words := theirs.must(t, "read", "="+base64.StdEncoding.EncodeToString([]byte(text[0]))); len(words) > 0 {
			got = string(must.Get(base64.StdEncoding.DecodeString(words[0]))(t))
		}
		if recorded := strings.ReplaceAll(text[1], `\0`, "\x00"); got != recorded {
			t.Errorf("%d: %.300s: %q, recorded as %q", i, text[0], got, recorded)
		}
	}
}

// docent reads all that Java writes, and would write the same bytes.
func TestWeReadCuratorsInstances(t *testing.T) {
	t.Parallel()
	path, c, theirs := pathOf(t), newClient(t), newActor(t, curatorDiscovery)
	for n, java := range []struct{ view, kind, payload, enabled string }{
		{"place", "DYNAMIC", "place", "enabled"},
		{"map", "STATIC", "map", "enabled"},
		{"object", "PERMANENT", "string", "enabled"},
		{"object", "DYNAMIC", "null", "enabled"},
		{"object", "DYNAMIC_SEQUENTIAL", "null", "enabled"},
		{"enabled-place", "DYNAMIC", "place", "disabled"},
	} {
		base := fmt.Sprint(path, "/", n)
		theirs.must(t, "register", base, java.view, "web", "i1", "80", java.kind, java.payload, java.enabled)
		in := javasOnly(t, registry[json.RawMessage](t, c, base))
		if in.ID != "i1" || in.Port != 80 || in.SSLPort != 0 || in.Kind.String() != java.kind ||
			in.Registered.UnixMilli() != javasTime || in.Disabled != (java.enabled == "disabled") {
			t.Errorf("%v: %+v", java, in)
		}
		if java.payload == "place" {
			got := javasOnly(t, registry[place](t, c, base)).Payload
			if want := (place{"application-1", "web", map[string]string{"zone": "eu"}}); !reflect.DeepEqual(got, want) {
				t.Errorf("payload %+v, want %+v", got, want)
			}
		}
		if in.Kind == discovery.DynamicSequential {
			continue
		}
		var opts []discovery.Option
		if in.Disabled {
			opts = append(opts, discovery.WithDisabledField())
		}
		mustRegister(t, registry[json.RawMessage](t, c, base+"/ours", opts...), in)
		ours, _, err := c.Get(t.Context(), base+"/ours/web/i1")
		must.OK(t, err)
		awaitData(t, c, base+"/web/i1", string(ours))
	}
}

// javasOnly returns the one instance of the service, which Java has registered. Java deletes it and creates
// it again when its client reports the first connection, maybe after the registration.
func javasOnly[T any](t *testing.T, r *discovery.Registry[T]) (only discovery.Instance[T]) {
	t.Helper()
	zktest.Eventually(t, generous, "one instance", func() bool {
		all := must.Get(r.Instances(t.Context(), "web"))(t)
		if len(all) == 1 {
			only = all[0]
		}
		return len(all) == 1
	})
	return only
}

// A service follows Java's instances, and an ID belongs to one of the two.
func TestCuratorInstancesComeAndGo(t *testing.T) {
	t.Parallel()
	path, c, theirs := pathOf(t), newClient(t), newActor(t, curatorDiscovery)
	r := registry[string](t, c, path)
	s := must.Get(r.Watch("web"))(t)
	has := func(want string) {
		t.Helper()
		zktest.Eventually(t, generous, "the instances "+want, func() bool {
			var all []string
			for _, in := range s.Instances() {
				all = append(all, fmt.Sprint(in.ID, ":", in.Port))
			}
			return strings.Join(all, " ") == want
		})
	}
	java := []string{path, "object", "web", "java", "80", "DYNAMIC", "string", "enabled"}
	theirs.must(t, append([]string{"register"}, java...)...)
	mustRegister(t, r, discovery.Instance[string]{ID: "go", Port: 90})
	has("go:90 java:80")
	late := must.Get(r.Register(discovery.Instance[string]{Name: "web", ID: "java", Port: 91}))(t)
	if err := late.Await(patient(t)); !errors.Is(err, node.ErrTaken) {
		t.Errorf("Await with Java's ID: %v, want ErrTaken", err)
	}
	must.OK(t, late.Close(t.Context()))
	java[4] = "81"
	theirs.must(t, append([]string{"update"}, java...)...)
	has("go:90 java:81")
	theirs.must(t, append([]string{"unregister"}, java...)...)
	has("go:90")
}
