package discovery

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strconv"
)

// The types of members, which are read as Jackson, by which Curator reads, reads those of Java's types. So an
// instance that Java's clients use is not hidden.

// A text may be a number or a truth value, too.
type text string

func (t *text) UnmarshalJSON(data []byte) error {
	if isScalar(data) {
		*t = text(data)
		return nil
	}
	return json.Unmarshal(data, (*string)(t))
}

// isScalar reports whether the value is a number, true or false.
func isScalar(data []byte) bool {
	return data[0] == '-' || data[0] >= '0' && data[0] <= '9' || data[0] == 't' || data[0] == 'f'
}

// An int32Member is a port. It may be a text, or a fraction, of which the whole part counts. An empty text
// is none.
type int32Member int32

func (m *int32Member) UnmarshalJSON(data []byte) error {
	n, err := wholeOf(data, math.MinInt32, math.MaxInt32)
	*m = int32Member(n)
	return err
}

// An int64Member is as an int32Member, with more digits.
type int64Member int64

func (m *int64Member) UnmarshalJSON(data []byte) error {
	n, err := wholeOf(data, math.MinInt64, math.MaxInt64)
	*m = int64Member(n)
	return err
}

func wholeOf(data []byte, least, most int64) (n int64, err error) {
	number := string(data)
	if data[0] == '"' {
		if err = json.Unmarshal(data, &number); err != nil {
			return 0, err
		}
	}
	if number == "" || number == "null" {
		return 0, nil
	}
	n, err = strconv.ParseInt(number, 10, 64)
	if err != nil && data[0] != '"' {
		var f float64
		if f, err = strconv.ParseFloat(number, 64); f < -1<<63 || f >= 1<<63 {
			return 0, mismatch[int64](data)
		}
		n = int64(f)
	}
	if err != nil || n < least || n > most {
		return 0, mismatch[int64](data)
	}
	return n, nil
}

// A flag may be a text or a number, too. Null is false.
type flag int

const (
	missing flag = iota
	on
	off
)

func flagOf(is bool) flag {
	if is {
		return on
	}
	return off
}

func (f flag) MarshalJSON() ([]byte, error) { return strconv.AppendBool(nil, f == on), nil }

func (f *flag) UnmarshalJSON(data []byte) error {
	switch string(data) {
	case `true`, `"true"`, `"True"`, `"TRUE"`:
		*f = on
	case `false`, `"false"`, `"False"`, `"FALSE"`, `null`, `""`:
		*f = off
	default:
		n, err := strconv.ParseInt(string(data), 10, 32)
		if err != nil {
			return mismatch[bool](data)
		}
		*f = flagOf(n != 0)
	}
	return nil
}

// A kindMember may be the number of a kind, too.
type kindMember Kind

func (k kindMember) MarshalJSON() ([]byte, error) { return json.Marshal(Kind(k).String()) }

func (k *kindMember) UnmarshalJSON(data []byte) error {
	names := kindNames()
	n, err := strconv.Atoi(string(data))
	if err != nil {
		var name string
		if err = json.Unmarshal(data, &name); err != nil {
			return err
		}
		n = slices.Index(names, name)
	}
	if n < 0 || n >= len(names) {
		return errKind
	}
	*k = kindMember(n)
	return nil
}

// mismatch returns the error for a value that is none of type T. It has nothing of the data.
func mismatch[T any](data []byte) error {
	what := "text"
	if isScalar(data) {
		what = "number"
	}
	return &json.UnmarshalTypeError{Value: what, Type: reflect.TypeFor[T]()}
}
