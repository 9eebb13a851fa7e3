package discovery

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A record is the JSON of an instance, with the fields in the order of Curator's writer.
type record struct {
	Name       string          `json:"name"`
	ID         string          `json:"id"`
	Address    *string         `json:"address"`
	Port       *int            `json:"port"`
	SSLPort    *int            `json:"sslPort"`
	Payload    json.RawMessage `json:"payload"`
	Registered int64           `json:"registrationTimeUTC"` // milliseconds since 1970
	Type       *string         `json:"serviceType"`
	URI        *uri            `json:"uriSpec"`
	Enabled    *bool           `json:"enabled,omitempty"`
}

type uri struct {
	Parts []URIPart `json:"parts"`
}

// encode returns the data of the instance's znode.
func encode[T any](in *Instance[T], cfg *config) ([]byte, error) {
	payload, err := encodePayload(in.Payload, cfg.class)
	if err != nil {
		return nil, err
	}
	kind, enabled := in.Kind.String(), !in.Disabled
	r := record{
		Name: in.Name, ID: in.ID,
		Address: orNull(in.Address), Port: orNull(in.Port), SSLPort: orNull(in.SSLPort),
		Payload: payload, Registered: in.Registered.UnixMilli(), Type: &kind,
	}
	if in.URI != nil {
		r.URI = &uri{in.URI}
	}
	if cfg.disabled {
		r.Enabled = &enabled
	}
	return marshal(r)
}

// encodePayload returns the payload's JSON. Objects begin with the name of the class, if there is one.
func encodePayload(payload any, class string) ([]byte, error) {
	data, err := marshal(payload)
	if err != nil {
		return nil, fmt.Errorf("payload: %w", err)
	}
	if class == "" || string(data) == "null" {
		return data, nil
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(data, &members) != nil {
		return nil, fmt.Errorf("payload: must be a JSON object to have the class %q", class)
	}
	if _, has := members["@class"]; has {
		return data, nil
	}
	first, err := marshal(map[string]string{"@class": class})
	if err != nil || len(members) == 0 {
		return first, err
	}
	return slices.Concat(first[:len(first)-1], []byte(","), data[1:]), nil
}

// marshal returns the JSON on one line, with all characters as they are, as Java writes it.
func marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), err
}

func orNull[V comparable](v V) *V {
	if v != *new(V) {
		return &v
	}
	return nil
}

// decode returns the instance that a znode has. Its errors have nothing of the data.
func decode[T any](data []byte) (in Instance[T], err error) {
	var r record
	if err := json.Unmarshal(data, &r); err != nil {
		return in, decodeError("instance", err)
	}
	if r.Name == "" || r.ID == "" {
		return in, errors.New("instance: has no name or no id")
	}
	in = Instance[T]{
		Name: r.Name, ID: r.ID, Address: orZero(r.Address), Port: orZero(r.Port), SSLPort: orZero(r.SSLPort),
		Registered: time.UnixMilli(r.Registered).UTC(), Disabled: r.Enabled != nil && !*r.Enabled,
	}
	if r.Type != nil {
		if in.Kind = Kind(slices.Index(kindNames(), *r.Type)); in.Kind < 0 {
			return in, errors.New("instance: its serviceType is unknown")
		}
	}
	if r.URI != nil {
		in.URI = r.URI.Parts
	}
	if len(r.Payload) > 0 {
		err = decodeError("payload", json.Unmarshal(r.Payload, &in.Payload))
	}
	return in, err
}

func orZero[V any](v *V) V {
	if v != nil {
		return *v
	}
	return *new(V)
}

// decodeError returns an error of encoding/json without what it quotes.
func decodeError(what string, err error) error {
	var syntax *json.SyntaxError
	var mismatch *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &syntax):
		return fmt.Errorf("%s: no JSON, at byte %d", what, syntax.Offset)
	case errors.As(err, &mismatch):
		return fmt.Errorf("%s: at byte %d there is no JSON of a %v", what, mismatch.Offset, mismatch.Type)
	}
	return fmt.Errorf("%s: %w", what, err) // of a method of the payload's
}
