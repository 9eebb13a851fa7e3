package discovery

import (
	"errors"
	"math"
	"strings"
	"testing"
)

type place struct {
	Zone string `json:"zone"`
}

func TestMarshalOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		v     any
		class string
		want  string // the JSON, or the error
	}{
		{"leaves characters as they are", "a<b>&\u2028", "", `"a<b>&` + "\\u2028" + `"`},
		{"begins an object with its class", place{"eu"}, "x.Y", `{"@class":"x.Y","zone":"eu"}`},
		{"gives an empty object its class", struct{}{}, "x.Y", `{"@class":"x.Y"}`},
		{"keeps a class that is there", map[string]string{"@class": "x.Z"}, "x.Y", `{"@class":"x.Z"}`},
		{"gives null no class", nil, "x.Y", "null"},
		{"refuses a list with a class", []int{1}, "x.Y", `must be a JSON object to have the class "x.Y"`},
		{"refuses what is no JSON", math.NaN(), "", "unsupported value"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			data, err := marshalJavaOf(c.v, c.class)
			if got := string(data); err == nil && got != c.want || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s, %v; want %s", got, err, c.want)
			}
		})
	}
}

// A quoter is a type whose own error reaches the caller.
type quoter struct{}

var errOwn = errors.New("of the type's own")

func (*quoter) UnmarshalJSON([]byte) error { return errOwn }

func TestUnmarshalQuotesNothing(t *testing.T) {
	t.Parallel()
	const secret = "s3cret"
	for data, want := range map[string]string{
		secret:                        "no JSON, at byte 1",
		`{"zone":` + secret + `}`:     "no JSON, at byte 9",
		`["` + secret + `"]`:          "at byte 1 there is no JSON of a discovery.place",
		`{"zone":["` + secret + `"]}`: "at byte 9 there is no JSON of a string",
	} {
		var got place
		if err := unmarshalJava([]byte(data), &got); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", data, err, want)
		}
	}
	var got place
	if err := unmarshalJava([]byte(`{"zone":"eu"}`), &got); err != nil || got.Zone != "eu" {
		t.Errorf("%+v, %v", got, err)
	}
	if err := unmarshalJava([]byte("{}"), new(quoter)); !errors.Is(err, errOwn) {
		t.Errorf("%v, want the error of the type", err)
	}
}
