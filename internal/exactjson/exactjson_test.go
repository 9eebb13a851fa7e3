package exactjson_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/docent-go/docent/internal/exactjson"
)

type inner struct {
	Deep int `json:"deep"`
	Tree *inner
}

type outer struct {
	inner

	Port  int `json:"port"`
	Plain string
	List  []inner          `json:"list"`
	Map   map[string]inner `json:"map"`
	Any   any              `json:"any"`
	Raw   json.RawMessage  `json:"raw"`
	Hide  int              `json:"-"`
	Dash  int              `json:"-,"` //nolint:staticcheck // a name of its own
	Kelv  int              `json:"k"`
}

func TestNamesAreExact(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]string{
		`{"port":1,"PORT":2}`:                               `{"port":1}`,
		`{"PORT":2,"port":1}`:                               `{"port":1}`,
		`{"Port":{"no":"number"},"port":1}`:                 `{"port":1}`,
		`{"plain":"a"}`:                                     `{}`,
		`{"Plain":"a","plain":"b"}`:                         `{"Plain":"a"}`,
		`{"DEEP":1,"Tree":{"Deep":2,"deep":3}}`:             `{"Tree":{"deep":3}}`,
		`{"list":[{"DEEP":1},{"deep":2},[]]}`:               ``,
		`{"list":[{"DEEP":1},{"deep":2}],"port":7}`:         `{"list":[{},{"deep":2}],"port":7}`,
		`{"map":{"DEEP":{"deep":1,"DEEP":2}}}`:              `{"map":{"DEEP":{"deep":1}}}`,
		`{"any":{"PORT":[{"Deep":1}]},"raw":{"Deep":1}}`:    `{"any":{"PORT":[{"Deep":1}]},"raw":{"Deep":1}}`,
		`{"po\u0072t":1,"PO\u0052T":2}`:                     `{"port":1}`,
		`{"a\"port\\":"\"PORT\":2","port":1}`:               `{"port":1}`,
		"{\"\u212a\":1,\"K\":2}":                            `{}`, // the Kelvin sign is a k of another case
		`{"Hide":1,"-":2,"list":null,"Tree":null,"map":{}}`: `{"-":2,"map":{}}`,
	} {
		var got outer
		if err := exactjson.Unmarshal([]byte(data), &got); (err != nil) != (want == "") {
			t.Errorf("%s: %v", data, err)
			continue
		}
		var expected outer
		if want != "" && (json.Unmarshal([]byte(want), &expected) != nil || !reflect.DeepEqual(got, expected)) {
			t.Errorf("%s: %+v, want %+v", data, got, expected)
		}
	}
}

// What is no JSON has the error that package json has, at the same place. The data is not changed.
func TestErrorsAreThoseOfPackageJSON(t *testing.T) {
	t.Parallel()
	for _, data := range []string{
		``, `{`, `}`, `]`, `,`, `"`, `"\`, `{"PORT`, `{"PORT"`, `{"PORT":1`, `{"PORT":1,"port":"x"}`, `{"list":[{"DEEP":1},{"deep":"x"}]}`,
		`[1]`, `7`, `null`, `{"port":1}x`, `{"po\qrt":1}`, "{\"po\nrt\":1}", `{,}`, `{"port",1}`, `["PORT",{}]`, `{"PORT" "port"}`,
		strings.Repeat("[", 1_000_000), strings.Repeat(`{"any":`, 100_000),
	} {
		kept := strings.Clone(data)
		text := []byte(data)
		got, want := exactjson.Unmarshal(text, new(outer)), json.Unmarshal([]byte(data), new(outer))
		if (got == nil) != (want == nil) || got != nil && got.Error() != want.Error() {
			t.Errorf("%.40s: %v, want %v", data, got, want)
		}
		if string(text) != kept {
			t.Errorf("%.40s was changed", data)
		}
	}
}

// A FuzzUnmarshal finds members that package json gives to a field of another name, and errors that differ.
func FuzzUnmarshal(f *testing.F) {
	f.Add([]byte(`{"port":1,"PORT":2,"list":[{"DEEP":1}],"any":{"x":"\"y\""}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var got, folded outer
		err, errFolded := exactjson.Unmarshal(data, &got), json.Unmarshal(data, &folded)
		if errFolded == nil && err != nil {
			t.Fatalf("%q: %v", data, err)
		}
		var all map[string]json.RawMessage
		if json.Unmarshal(data, &all) != nil || err != nil {
			return
		}
		if _, has := all["port"]; !has && got.Port != 0 {
			t.Fatalf("%q: another member has set port", data)
		}
	})
}
