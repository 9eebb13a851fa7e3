package discovery

import (
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
