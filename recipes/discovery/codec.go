package discovery

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/docent-go/docent/recipes/model"
)

// A record is the JSON of an instance, with the fields in the order of Curator's writer.
type record struct {
	Name       text            `json:"name"`
	ID         text            `json:"id"`
	Address    *text           `json:"address"`
	Port       *int32Member    `json:"port"`
	SSLPort    *int32Member    `json:"sslPort"`
	Payload    json.RawMessage `json:"payload"`
	Registered int64Member     `json:"registrationTimeUTC"` // milliseconds since 1970
	Type       *kindMember     `json:"serviceType"`
	URI        *uri            `json:"uriSpec"`
	Enabled    flag            `json:"enabled,omitempty"`
}

type uri struct {
	Parts []uriPart `json:"parts"`
}

type uriPart struct {
	Value    text `json:"value"`
	Variable flag `json:"variable"`
}

// encode returns the data of the instance's znode, or what prevents that.
func encode[T any](in *Instance[T], cfg *config) ([]byte, error) {
	if err := in.faults(cfg); err != nil {
		return nil, err
	}
	payload, err := marshalJavaOf(in.Payload, cfg.class)
	if err != nil {
		return nil, fmt.Errorf("payload: %w", err)
	}
	kind := kindMember(in.Kind)
	r := record{
		Name: text(in.Name), ID: text(in.ID),
		Address: orNull(text(in.Address)), Port: orNull(int32Member(in.Port)), SSLPort: orNull(int32Member(in.SSLPort)),
		Payload: payload, Registered: int64Member(in.Registered.UnixMilli()), Type: &kind,
	}
	if in.URI != nil {
		r.URI = &uri{Parts: []uriPart{}}
		for _, part := range in.URI {
			r.URI.Parts = append(r.URI.Parts, uriPart{text(part.Value), flagOf(part.Variable)})
		}
	}
	if cfg.disabled {
		r.Enabled = flagOf(!in.Disabled)
	}
	return marshalJava(r)
}

var errKind = errors.New("its serviceType is unknown")

// byteOrderMark may be ahead of the JSON, as for Curator's reader.
const byteOrderMark = "\ufeff"

// decode returns the instance that a znode has. Its errors have nothing of the data.
func decode[T any](data []byte) (in Instance[T], err error) {
	r, err := model.JSON[record]().Decode(bytes.TrimPrefix(data, []byte(byteOrderMark)))
	if err != nil {
		return in, fmt.Errorf("instance: %w", err)
	}
	if r.Name == "" || r.ID == "" {
		return in, errors.New("instance: has no name or no id")
	}
	in = Instance[T]{
		Name: string(r.Name), ID: string(r.ID), Address: string(orZero(r.Address)),
		Port: int(orZero(r.Port)), SSLPort: int(orZero(r.SSLPort)), Kind: Kind(orZero(r.Type)),
		Registered: time.UnixMilli(int64(r.Registered)).UTC(), Disabled: r.Enabled == off,
	}
	if r.URI != nil {
		in.URI = make([]URIPart, len(r.URI.Parts))
		for i, part := range r.URI.Parts {
			in.URI[i] = URIPart{string(part.Value), part.Variable == on}
		}
	}
	if len(r.Payload) > 0 {
		if in.Payload, err = model.JSON[T]().Decode(r.Payload); err != nil {
			return in, fmt.Errorf("payload: %w", err)
		}
	}
	return in, nil
}
