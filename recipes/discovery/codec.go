package discovery

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/docent-go/docent/recipes/model"
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

// encode returns the data of the instance's znode, which is at path, or what prevents that.
func encode[T any](in *Instance[T], path string, cfg *config) ([]byte, error) {
	if err := in.faults(path, cfg); err != nil {
		return nil, err
	}
	payload, err := marshalJavaOf(in.Payload, cfg.class)
	if err != nil {
		return nil, fmt.Errorf("payload: %w", err)
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
	return marshalJava(r)
}

// decode returns the instance that a znode has. Its errors have nothing of the data.
func decode[T any](data []byte) (in Instance[T], err error) {
	r, err := model.JSON[record]().Decode(data)
	if err != nil {
		return in, fmt.Errorf("instance: %w", err)
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
		if in.Payload, err = model.JSON[T]().Decode(r.Payload); err != nil {
			return in, fmt.Errorf("payload: %w", err)
		}
	}
	return in, nil
}
