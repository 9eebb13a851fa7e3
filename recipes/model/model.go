// Package model says what the data and the path of a znode mean: a [Codec] turns data into values of a
// Go type and back, and a [Pattern] is a path with parameters. It takes the place of Curator's
// ModeledFramework.
//
// The recipes that keep data take a codec:
//
//	routes := cache.Of(tree, model.JSON[Route]())                        // what is below a path
//	limits, err := counter.NewValue(client, path, model.JSON[Limits]())  // one znode that processes share
//	self, err := node.NewValue(client, path, place, model.JSON[Place]()) // one znode that a process keeps
//
// Package discovery has the type of its payload as a type parameter, because Curator's format is JSON.
//
// Stability: stable.
//
// # Schemas that change
//
// A member that is added to a type needs no care where processes only read: [JSON] ignores members that
// it does not know. But a process that reads, changes and writes a value drops them. If that must not
// happen, or a member changes its meaning, use [Versioned]. A process then refuses to read, and so to
// update, data of a version that it does not know ([ErrSchema]). To go from version 1 to 2 without such
// errors, first have all processes read both and write 1, then have them write 2:
//
//	model.Versioned(1, map[int]func([]byte) (Limits, error){2: fromVersion2})
//	model.Versioned(2, map[int]func([]byte) (Limits, error){1: fromVersion1})
package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/docent-go/docent/internal/exactjson"
)

// ErrSchema is returned by the Decode of [Versioned] for data of a version that it does not know.
var ErrSchema = errors.New("model: unknown version of the schema")

// A Codec turns values into a znode's data and back. Both functions are required, and may be called
// concurrently. Their errors should have nothing of the data, because errors are logged.
type Codec[T any] struct {
	Encode func(T) ([]byte, error)
	Decode func([]byte) (T, error)
}

// JSON returns a codec that keeps a value as JSON. The name of a member has to be exactly that of a field:
// "PORT" is not "port", although package json takes it for that. The errors of Decode have nothing of the
// data, unless a method of T puts it there.
func JSON[T any]() Codec[T] {
	return Codec[T]{
		Encode: func(v T) ([]byte, error) { return json.Marshal(v) },
		Decode: decodeJSON[T],
	}
}

func decodeJSON[T any](data []byte) (v T, err error) {
	err = exactjson.Unmarshal(data, &v)
	var syntax *json.SyntaxError
	var mismatch *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		err = fmt.Errorf("no JSON, at byte %d", syntax.Offset)
	case errors.As(err, &mismatch) && mismatch.Field != "":
		err = fmt.Errorf("at byte %d there is no JSON of a %v, in member %s", mismatch.Offset, mismatch.Type, mismatch.Field)
	case errors.As(err, &mismatch):
		err = fmt.Errorf("at byte %d there is no JSON of a %v", mismatch.Offset, mismatch.Type)
	}
	if err != nil {
		return *new(T), err
	}
	return v, nil
}

// Bytes returns a codec that keeps the data as it is, as Curator's SharedValue does.
func Bytes() Codec[[]byte] {
	same := func(data []byte) ([]byte, error) { return slices.Clone(data), nil }
	return Codec[[]byte]{Encode: same, Decode: same}
}

// schemaMember is the member of a JSON object that has the version of its schema.
const schemaMember = "schema"

// Versioned returns a codec that keeps a value as a JSON object, in which the member "schema" is the
// version. Decode reads data of that version as [JSON] does, and data of another one by its function in
// others; if there is none, the error is [ErrSchema]. Data without the member has the version 0: it was
// written before the schema had versions. Encode always writes version. It returns an error for a
// value that is no JSON object. Versioned panics if version is less than 1, or if T is a struct that has a
// member "schema" of its own, whose value would be lost.
func Versioned[T any](version int, others map[int]func(data []byte) (T, error)) Codec[T] {
	if version < 1 {
		panic(fmt.Sprintf("model.Versioned: version %d: must be at least 1", version))
	}
	if _, has := exactjson.Members(reflect.TypeFor[T]())[schemaMember]; has {
		panic(fmt.Sprintf("model.Versioned: %v: must not have a member %q of its own", reflect.TypeFor[T](), schemaMember))
	}
	others = maps.Clone(others)
	known := slices.Sorted(maps.Keys(others))
	plain := JSON[T]()
	return Codec[T]{
		Encode: func(v T) ([]byte, error) {
			data, err := plain.Encode(v)
			if err != nil {
				return nil, err
			}
			return withVersion(data, version)
		},
		Decode: func(data []byte) (v T, err error) {
			found, err := versionOf(data)
			if err != nil {
				return v, err
			}
			if found == version {
				return plain.Decode(data)
			}
			if decode := others[found]; decode != nil {
				return decode(data)
			}
			return v, fmt.Errorf("%w: %d, this program writes %d and also reads %v", ErrSchema, found, version, known)
		},
	}
}

// withVersion returns the JSON object with the version as its first member. A type that has the member
// itself, as a map that was read has, gets the version in it.
func withVersion(data []byte, version int) ([]byte, error) {
	members := membersOf(data)
	if members == nil {
		return nil, errors.New("must be a JSON object to have a version")
	}
	if _, has := members[schemaMember]; has {
		members[schemaMember] = json.RawMessage(fmt.Sprint(version))
		return json.Marshal(members)
	}
	first := fmt.Sprintf(`{"%s":%d`, schemaMember, version)
	if len(members) > 0 {
		first += ","
	}
	return append([]byte(first), data[1:]...), nil
}

func versionOf(data []byte) (int, error) {
	member, has := membersOf(data)[schemaMember]
	if !has {
		return 0, nil
	}
	version, err := decodeJSON[int](member)
	if err != nil {
		return 0, fmt.Errorf("the member %q is no version", schemaMember)
	}
	return version, nil
}

// membersOf returns the members of a JSON object; nil if data is none.
func membersOf(data []byte) map[string]json.RawMessage {
	members, err := decodeJSON[map[string]json.RawMessage](data)
	if err != nil {
		return nil
	}
	return members
}
