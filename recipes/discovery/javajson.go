package discovery

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// marshalJava returns the JSON of v on one line. It leaves all characters as they are, as Java does.
func marshalJava(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), err
}

// marshalJavaOf returns the JSON of v, which begins with the name of the Java class as the member
// "@class". If the class is "", v is nil, or v has the member already, marshalJavaOf is marshalJava. If v is
// no JSON object, marshalJavaOf returns an error.
func marshalJavaOf(v any, class string) ([]byte, error) {
	data, err := marshalJava(v)
	if err != nil || class == "" || string(data) == "null" {
		return data, err
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(data, &members) != nil {
		return nil, fmt.Errorf("must be a JSON object to have the class %q", class)
	}
	if _, has := members["@class"]; has {
		return data, nil
	}
	first, err := marshalJava(map[string]string{"@class": class})
	if err != nil || len(members) == 0 {
		return first, err
	}
	return slices.Concat(first[:len(first)-1], []byte(","), data[1:]), nil
}

// orNull returns v for a member that is null in JSON if v is the zero value.
func orNull[V comparable](v V) *V {
	if v != *new(V) {
		return &v
	}
	return nil
}

// orZero returns the value of a member, or the zero value if the member is null or missing.
func orZero[V any](v *V) V {
	if v != nil {
		return *v
	}
	return *new(V)
}
