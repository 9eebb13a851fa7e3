package model_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/model"
)

type place struct {
	Zone  string `json:"zone"`
	Ports []int  `json:"ports,omitempty"`
}

var errOwn = errors.New("the type's own")

type quoter struct{}

func (*quoter) UnmarshalJSON([]byte) error { return errOwn }

// Errors of data are logged, so they must not quote the data, which may have secrets.
func TestErrorsQuoteNothing(t *testing.T) {
	t.Parallel()
	const secret = "s3cret"
	for data, want := range map[string]string{
		secret:                        "no JSON, at byte 1",
		`{"zone":` + secret + `}`:     "no JSON, at byte 9",
		`["` + secret + `"]`:          "at byte 1 there is no JSON of a model_test.place",
		`{"zone":["` + secret + `"]}`: "at byte 9 there is no JSON of a string, in member zone",
		`{"zone":"eu","ports":[1.5]}`: "at byte 25 there is no JSON of a int, in member ports",
	} {
		got, err := model.JSON[place]().Decode([]byte(data))
		if err == nil || err.Error() != want || got.Zone != "" {
			t.Errorf("%s: %+v, %v; want %s and the zero value", data, got, err, want)
		}
	}
	if _, err := model.JSON[quoter]().Decode([]byte("{}")); !errors.Is(err, errOwn) {
		t.Errorf("%v, want the error of the type", err)
	}
}

// Package json would let the later member replace what the other one has said.
func TestNamesOfMembersAreExact(t *testing.T) {
	t.Parallel()
	got, err := model.JSON[place]().Decode([]byte(`{"zone":"eu","ZONE":"us","Ports":"none"}`))
	if err != nil || got.Zone != "eu" || got.Ports != nil {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestBytesAreCopied(t *testing.T) {
	t.Parallel()
	data := []byte("a")
	encoded, err := model.Bytes().Encode(data)
	decoded, err2 := model.Bytes().Decode(data)
	data[0] = 'b'
	if err != nil || err2 != nil || string(encoded) != "a" || string(decoded) != "a" {
		t.Errorf("%s, %s, %v, %v", encoded, decoded, err, err2)
	}
}

// A limits1 is the limit of version 1, a number of requests a second; version 2 has one for each service.
type limits1 struct {
	Rate int `json:"rate"`
}

type limits2 struct {
	Rates map[string]int `json:"rates"`
}

func from1(data []byte) (limits2, error) {
	old, err := model.JSON[limits1]().Decode(data)
	return limits2{map[string]int{"*": old.Rate}}, err
}

func from2(data []byte) (limits1, error) {
	next, err := model.JSON[limits2]().Decode(data)
	return limits1{next.Rates["*"]}, err
}

// The programs of a rollout: one that knows version 1, one that reads both and writes 1, one that
// reads both and writes 2, one that knows version 2. Each reads what its neighbours write.
func TestARolloutOfAVersion(t *testing.T) {
	t.Parallel()
	type program struct {
		write func() ([]byte, error)
		read  func([]byte) (rate int, err error)
	}
	of1 := func(c model.Codec[limits1]) program {
		return program{
			func() ([]byte, error) { return c.Encode(limits1{7}) },
			func(data []byte) (int, error) { v, err := c.Decode(data); return v.Rate, err },
		}
	}
	of2 := func(c model.Codec[limits2]) program {
		return program{
			func() ([]byte, error) { return c.Encode(limits2{map[string]int{"*": 7}}) },
			func(data []byte) (int, error) { v, err := c.Decode(data); return v.Rates["*"], err },
		}
	}
	programs := []program{
		of1(model.Versioned[limits1](1, nil)),
		of1(model.Versioned(1, map[int]func([]byte) (limits1, error){2: from2})),
		of2(model.Versioned(2, map[int]func([]byte) (limits2, error){1: from1})),
		of2(model.Versioned[limits2](2, nil)),
	}
	known := [4][4]bool{ // by reader and writer
		{true, true, false, false},
		{true, true, true, true},
		{true, true, true, true},
		{false, false, true, true},
	}
	for r, reader := range programs {
		for w, writer := range programs {
			data := must.Get(writer.write())(t)
			rate, err := reader.read(data)
			switch {
			case known[r][w] && (err != nil || rate != 7):
				t.Errorf("program %d reads %s of program %d: %d, %v", r, data, w, rate, err)
			case !known[r][w] && (!errors.Is(err, model.ErrSchema) || rate != 0):
				t.Errorf("program %d reads %s of program %d: %d, %v; want ErrSchema", r, data, w, rate, err)
			}
		}
	}
}

func TestVersioned(t *testing.T) {
	t.Parallel()
	plain := func(data []byte) (place, error) { return model.JSON[place]().Decode(data) }
	codec := model.Versioned(3, map[int]func([]byte) (place, error){0: plain})
	for data, want := range map[string]string{
		`{"schema":3,"zone":"eu"}`: "eu <nil>",
		`{"zone":"eu"}`:            "eu <nil>", // from before there were versions
		`{"schema":4,"zone":"eu"}`: " model: unknown version of the schema: 4, this program writes 3 and also reads [0]",
		`{"schema":"s3cret"}`:      ` the member "schema" is no version`,
		`{"Schema":4,"zone":"eu"}`: "eu <nil>", // another member
		`s3cret`:                   " no JSON, at byte 1",
	} {
		got, err := codec.Decode([]byte(data))
		if text := fmt.Sprint(got.Zone, " ", err); text != want {
			t.Errorf("%s: %s, want %s", data, text, want)
		}
	}
	if data, err := codec.Encode(place{Zone: "eu", Ports: []int{1}}); err != nil || string(data) != `{"schema":3,"zone":"eu","ports":[1]}` {
		t.Errorf("%s, %v", data, err)
	}
	if data, err := model.Versioned[struct{}](1, nil).Encode(struct{}{}); err != nil || string(data) != `{"schema":1}` {
		t.Errorf("an empty object: %s, %v", data, err)
	}
	maps := model.Versioned[map[string]any](2, nil)
	if data, err := maps.Encode(map[string]any{"a": 1, "schema": 1}); err != nil || string(data) != `{"a":1,"schema":2}` {
		t.Errorf("a map that has the member: %s, %v", data, err)
	}
	if data, err := model.Versioned[[]int](1, nil).Encode([]int{1}); err == nil {
		t.Errorf("a list has the version %s", data)
	}
	defer func() {
		if text := fmt.Sprint(recover()); !strings.Contains(text, "version 0: must be at least 1") {
			t.Errorf("version 0: %s", text)
		}
	}()
	model.Versioned[int](0, nil)
}

func TestPattern(t *testing.T) {
	t.Parallel()
	const route model.Pattern = "/routes/{service}/at/{instance}"
	path, err := route.Path("web", "{1}")
	if err != nil || path != "/routes/web/at/{1}" {
		t.Errorf("%q, %v", path, err)
	}
	if values, ok := route.Match(path); !ok || !slices.Equal(values, []string{"web", "{1}"}) {
		t.Errorf("%q, %v", values, ok)
	}
	for _, path := range []string{"", "/", "/routes/web", "/routes/web/at", "/routes/web/at/", "/routes/web/in/1", "/routes/web/at/1/2"} {
		if values, ok := route.Match(path); ok {
			t.Errorf("%s matches: %q", path, values)
		}
	}
	for want, values := range map[string][]string{
		"1 values: must be one for each parameter":                        {"web"},
		"3 values: must be one for each parameter":                        {"web", "1", "2"},
		`value "" of {service}: must not be empty or contain a slash`:     {"", "1"},
		`value "a/b" of {instance}: must not be empty or contain a slash`: {"web", "a/b"},
		"must not contain the element ..":                                 {"..", "1"},
	} {
		if path, err := route.Path(values...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %q, %v; want %s", values, path, err, want)
		}
	}
	if path, err := model.Pattern("routes/{a}").Path("web"); err == nil {
		t.Errorf("a pattern without a root: %q", path)
	}
}

// A field Schema is another member than the version's. A struct that has the version's own member would lose
// its value.
func TestVersionedOfATypeWithASchema(t *testing.T) {
	t.Parallel()
	type named struct{ Schema string }
	codec := model.Versioned[named](1, nil)
	data, err := codec.Encode(named{"public"})
	got, err2 := codec.Decode(data)
	if err != nil || err2 != nil || got.Schema != "public" {
		t.Errorf("%s, %v: %+v, %v", data, err, got, err2)
	}
	type tagged struct {
		Schema string `json:"schema"`
	}
	defer func() {
		if text := fmt.Sprint(recover()); !strings.Contains(text, `must not have a member "schema"`) {
			t.Errorf("a member of its own: %s", text)
		}
	}()
	model.Versioned[*tagged](1, nil)
}
