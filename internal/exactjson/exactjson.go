// Package exactjson reads JSON as package json does, except that a member belongs to a field only if its
// name is exactly the field's. Package json ignores case: "PORT" would replace what "port" has said, and
// other programs, such as those with Curator, see two members.
package exactjson

import (
	"bytes"
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Unmarshal is [json.Unmarshal] with exact names. Its errors have the same offsets. Types with methods of
// their own to read JSON, or text, read as they do.
func Unmarshal(data []byte, v any) error {
	return json.Unmarshal(exact(data, reflect.TypeOf(v)), v)
}

// Members returns the names of the members that a type has as JSON, with their types; nil if it is no
// struct, or reads JSON by a method of its own.
func Members(t reflect.Type) map[string]reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || readsItself(t) {
		return nil
	}
	if known, ok := members.Load(t); ok {
		return known.(map[string]reflect.Type)
	}
	found := make(map[string]reflect.Type)
	addMembers(found, t, nil)
	members.Store(t, found)
	return found
}

var members sync.Map //nolint:gochecknoglobals // of map[string]reflect.Type by reflect.Type, as package json has it

// addMembers adds the members of a struct and of those that it embeds. A name of an outer struct hides that
// of an inner one.
func addMembers(found map[string]reflect.Type, t reflect.Type, within []reflect.Type) {
	var embedded []reflect.Type
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case f.Tag.Get("json") == "-":
		case f.Anonymous && name == "" && inner.Kind() == reflect.Struct:
			embedded = append(embedded, inner)
		case f.IsExported():
			if name == "" {
				name = f.Name
			}
			if _, hidden := found[name]; !hidden {
				found[name] = f.Type
			}
		}
	}
	within = append(within, t)
	for _, inner := range embedded {
		if !slices.Contains(within, inner) {
			addMembers(found, inner, within)
		}
	}
}

func readsItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// element returns the type of what a value of type t has below the name, "" for an element of a list. It
// returns nil if that is not known, and false if a struct has no such member.
func element(t reflect.Type, name string) (reflect.Type, bool) {
	if t == nil {
		return nil, true
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if readsItself(t) {
		return nil, true
	}
	switch t.Kind() {
	case reflect.Map, reflect.Slice, reflect.Array:
		return t.Elem(), true
	case reflect.Struct:
		inner, ok := Members(t)[name]
		return inner, ok
	}
	return nil, true
}

// unnamed replaces the characters of a name. No field can have it in its name, whatever its tag.
const unnamed = '\''

// exact returns data, in which the names of members that no field has exactly are replaced by others of the
// same length. If data is no JSON, the result is none either. It is not recursive, because data may be
// nested as deep as it is long.
func exact(data []byte, t reflect.Type) []byte {
	type level struct {
		t      reflect.Type // of the object or list
		object bool
	}
	var above []level
	next, named := t, false // the type of the next value; whether the next string is a name
	copied := false
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '{', '[':
			named = data[i] == '{'
			above = append(above, level{next, named})
			if !named {
				next, _ = element(next, "")
			}
		case '}', ']':
			if len(above) == 0 {
				return data
			}
			above, named = above[:len(above)-1], false
		case ',':
			if len(above) == 0 {
				return data
			}
			top := above[len(above)-1]
			if named = top.object; !named {
				next, _ = element(top.t, "")
			}
		case '"':
			end := endOfString(data, i)
			if end < 0 || !named {
				i = max(i, end)
				continue
			}
			var ok bool
			if next, ok = element(above[len(above)-1].t, nameOf(data[i:end+1])); !ok && json.Valid(data[i:end+1]) {
				if !copied {
					data, copied = bytes.Clone(data), true
				}
				copy(data[i+1:end], bytes.Repeat([]byte{unnamed}, end-i-1))
			}
			i, named = end, false
		}
	}
	return data
}

// endOfString returns the index of the quotation mark that ends the string that begins at i; -1 if there is
// none.
func endOfString(data []byte, i int) int {
	for i++; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return -1
}

// nameOf returns the text of a JSON string.
func nameOf(quoted []byte) string {
	if !bytes.ContainsRune(quoted, '\\') {
		return string(quoted[1 : len(quoted)-1])
	}
	var name string
	_ = json.Unmarshal(quoted, &name) // no JSON: the caller finds that out
	return name
}
