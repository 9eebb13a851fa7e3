package discovery_test

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
)

// registered is the time of the instances whose bytes are compared.
func registered() time.Time { return time.UnixMilli(1795319723988).UTC() }

// write registers the instance and returns the data of its znode.
func write[T any](t *testing.T, env *zkenv.Env, in discovery.Instance[T], opts ...discovery.Option) (string, framework.Stat) {
	t.Helper()
	c, base := env.Client(t), recipetest.Path(t)
	r := must.Get(discovery.New[T](c, base, opts...))(t)
	in.Name, in.ID, in.Registered = "web", "i1", registered()
	reg := must.Get(r.Register(in))(t)
	must.OK(t, reg.Await(recipetest.Patient(t)))
	data, st := must.Get2(c.Get(t.Context(), base+"/web/i1"))(t)
	if got := readerOf(discovery.New[T](c, base)).mustRead(t); !reflect.DeepEqual(got, in) {
		t.Errorf("read back %+v, want %+v", got, in)
	}
	must.OK(t, r.Close(t.Context()))
	return string(data), st
}

type reader[T any] struct{ *discovery.Registry[T] }

func readerOf[T any](r *discovery.Registry[T], err error) reader[T] {
	if err != nil {
		panic(err)
	}
	return reader[T]{r}
}

func (r reader[T]) mustRead(t *testing.T) discovery.Instance[T] {
	t.Helper()
	all, err := r.Instances(t.Context(), "web")
	if err != nil || len(all) != 1 {
		t.Fatalf("instances %v, %v; want one", all, err)
	}
	return all[0]
}

// The bytes are those that Curator 5.4's x-discovery wrote.
func TestTheBytesAreCurators(t *testing.T) {
	t.Parallel()
	const before = `{"name":"web","id":"i1","address":"10.0.0.1","port":80,"sslPort":null,"payload":`
	const after = `,"registrationTimeUTC":1795319723988,"serviceType":`
	const uriText = `{"parts":[{"value":"scheme","variable":true},{"value":"://","variable":false}]}}`
	parts := []discovery.URIPart{{Value: "scheme", Variable: true}, {Value: "://"}}
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		check := func(what, got, want string) {
			t.Helper()
			if got != want {
				t.Errorf("%s:\n%s, want\n%s", what, got, want)
			}
		}
		for kind, ephemeral := range map[discovery.Kind]bool{discovery.Dynamic: true, discovery.Static: false, discovery.Permanent: false} {
			data, st := write(t, env, discovery.Instance[any]{Address: "10.0.0.1", Port: 80, Kind: kind})
			check(kind.String(), data, before+"null"+after+`"`+kind.String()+`","uriSpec":null}`)
			if (st.EphemeralOwner != 0) != ephemeral {
				t.Errorf("%v: owner %#x", kind, st.EphemeralOwner)
			}
		}
		data, _ := write(t, env, discovery.Instance[string]{Address: "10.0.0.1", Port: 80, Payload: "a<b>&"})
		check("a string", data, before+`"a<b>&"`+after+`"DYNAMIC","uriSpec":null}`)
		type place struct {
			Zone   string `json:"zone"`
			Weight int    `json:"weight"`
		}
		data, _ = write(t, env, discovery.Instance[place]{Address: "10.0.0.1", Port: 80, Payload: place{"eu", 3}, URI: parts},
			discovery.WithClass("com.example.P"))
		check("a class", data, before+`{"@class":"com.example.P","zone":"eu","weight":3}`+after+`"DYNAMIC","uriSpec":`+uriText)
		data, _ = write(t, env, discovery.Instance[struct{}]{Address: "10.0.0.1", Port: 80, Disabled: true},
			discovery.WithClass("com.example.P"), discovery.WithDisabledField())
		check("disabled", data, before+`{"@class":"com.example.P"}`+after+`"DYNAMIC","uriSpec":null,"enabled":false}`)
		data, _ = write(t, env, discovery.Instance[any]{SSLPort: 443}, discovery.WithClass("com.example.P"))
		check("without a payload", data, `{"name":"web","id":"i1","address":null,"port":null,"sslPort":443,"payload":null`+after+`"DYNAMIC","uriSpec":null}`)
		data, _ = write(t, env, discovery.Instance[map[string]string]{Payload: map[string]string{"@class": "java.util.LinkedHashMap"}}, discovery.WithClass("com.example.P"))
		check("a class of its own", data, `{"name":"web","id":"i1","address":null,"port":null,"sslPort":null,"payload":{"@class":"java.util.LinkedHashMap"}`+after+`"DYNAMIC","uriSpec":null}`)
	}, zkenv.Only("the bytes are the same in all", zkenv.Embedded, zkenv.Standalone))
}

// One bad znode hides no other. Curator's query fails for all.
func TestAnUnreadableInstanceHidesNoOther(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		c, base := env.Client(t), recipetest.Path(t)
		logged := make(chan string, 100)
		r := newRegistry(t, c, base, discovery.WithUnreadable(func(path string, err error) {
			logged <- strings.TrimPrefix(path, base) + ": " + err.Error()
		}))
		mustRegister(t, r, web("i1", 80))
		mustRegister(t, r, web("z9", 81))
		s := mustWatch(t, r, "web")
		const secret = "s3cret"
		bad := map[string][2]string{ // the data, and the error
			"empty":   {"", "instance: no JSON, at byte 0"},
			"text":    {secret, "instance: no JSON, at byte 1"},
			"nothing": {"{}", "instance: has no name or no id"},
			"array":   {`["` + secret + `"]`, "at byte 1 there is no JSON of a discovery.record"},
			"port":    {`{"name":"web","id":"x","port":"` + secret + `"}`, "no JSON of a int"},
			"payload": {`{"name":"web","id":"x","payload":"` + secret + `"}`, "payload: at byte"},
			"kind":    {`{"name":"web","id":"x","serviceType":"` + secret + `"}`, "serviceType is unknown"},
		}
		for name, b := range bad {
			must.Get(c.Create(t.Context(), base+"/web/"+name, []byte(b[0])))(t)
		}
		mustRegister(t, r, web("z99", 82))
		awaitInstances(t, s, "i1:80 z9:81 z99:82")
		for range 2 { // the second time nothing is reported
			if got := listed(t, c, r); got != "i1:80 z9:81 z99:82" {
				t.Errorf("Instances: %s", got)
			}
		}
		if len(logged) != len(bad) {
			t.Errorf("%d reports, want one for each of %d", len(logged), len(bad))
		}
		for range len(logged) {
			report := <-logged
			name, text, _ := strings.Cut(strings.TrimPrefix(report, "/web/"), ": ")
			if !strings.Contains(text, bad[name][1]) || strings.Contains(text, secret) {
				t.Errorf("%s: want an error with %q, and none of the data", report, bad[name][1])
			}
		}
		must.Get(c.Set(t.Context(), base+"/web/text", []byte(`{"name":"web","id":"text","port":7}`), -1))(t)
		awaitInstances(t, s, "i1:80 text:7 z9:81 z99:82")
	})
}

func TestRegisterRefuses(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		route, base := env.Route(t), recipetest.Path(t)
		c := route.Client(t)
		r := newRegistry(t, c, base)
		route.ResetRequests()
		change := func(fn func(*instance)) instance {
			in := web("i1", 80)
			fn(&in)
			return in
		}
		for want, in := range map[string]instance{
			`port -1: must be from 0 to 65535`:                           change(func(in *instance) { in.Port = -1 }),
			`SSL port 65536: must be from 0 to 65535`:                    change(func(in *instance) { in.SSLPort = 65536 }),
			`kind DYNAMIC_SEQUENTIAL: must be Dynamic, Static or Perman`: change(func(in *instance) { in.Kind = discovery.DynamicSequential }),
			`kind Kind(7)`: change(func(in *instance) { in.Kind = 7 }),
			`disabled: must not be set without the option WithDisabledF`: change(func(in *instance) { in.Disabled = true }),
			`too large`: change(func(in *instance) { in.Payload.Zone = strings.Repeat("x", 1<<20) }),
		} {
			if _, err := r.Register(in); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("Register(%s): %v, want an error with %q", want, err, want)
			}
		}
		floats := readerOf(discovery.New[float64](c, base))
		if _, err := floats.Register(discovery.Instance[float64]{Name: "web", Payload: math.NaN()}); err == nil || !strings.Contains(err.Error(), "payload: ") {
			t.Errorf("a payload that does not encode: %v", err)
		}
		classed := readerOf(discovery.New[json.RawMessage](c, base, discovery.WithClass("x.Y")))
		if _, err := classed.Register(discovery.Instance[json.RawMessage]{Name: "web", Payload: json.RawMessage(`[1]`)}); err == nil || !strings.Contains(err.Error(), `payload: must be a JSON object to have the class "x.Y"`) {
			t.Errorf("a list with a class: %v", err)
		}
		if n := len(route.Requests()); n > route.Count(fault.Ping) {
			t.Errorf("requests %v, want none", route.Requests())
		}
		reg := mustRegister(t, r, web("i1", 80))
		recipetest.Says(t, recipetest.Err(r.Register(web("i1", 81))), `ID "i1": this Registry has registered it`)
		for what, in := range map[string]instance{
			"ID":   web("i2", 80),
			"name": change(func(in *instance) { in.Name = "api" }),
			"kind": change(func(in *instance) { in.Kind = discovery.Static }),
			"port": web("i1", -1),
		} {
			if err := reg.Update(t.Context(), in); err == nil || !strings.Contains(err.Error(), "must") {
				t.Errorf("Update with another %s: %v", what, err)
			}
		}
		must.OK(t, errors.Join(reg.Close(t.Context()), r.Close(t.Context()), r.Close(t.Context())))
		recipetest.Fails(t, "Register after Close", recipetest.Err(r.Register(web("i1", 80))), framework.ErrClosed)
		recipetest.Fails(t, "Watch after Close", recipetest.Err(r.Watch("web")), framework.ErrClosed)
		recipetest.Fails(t, "Update after Close", reg.Update(t.Context(), web("i1", 80)), framework.ErrClosed)
	}, zkenv.Only("nothing of it depends on the server", zkenv.Embedded))
}
