package counter

import (
	"encoding/json"
	"slices"
)

// A Codec turns values into a znode's data and back. Both functions are required, and may be called
// concurrently.
type Codec[T any] struct {
	Encode func(T) ([]byte, error)
	Decode func([]byte) (T, error)
}

// JSON returns a codec that keeps a value as JSON.
func JSON[T any]() Codec[T] {
	return Codec[T]{
		Encode: func(v T) ([]byte, error) { return json.Marshal(v) },
		Decode: func(data []byte) (v T, err error) {
			err = json.Unmarshal(data, &v)
			return v, err
		},
	}
}

// Bytes returns a codec that keeps the data as it is, as Curator's SharedValue does.
func Bytes() Codec[[]byte] {
	same := func(data []byte) ([]byte, error) { return slices.Clone(data), nil }
	return Codec[[]byte]{Encode: same, Decode: same}
}
