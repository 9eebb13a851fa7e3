package discovery

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/docent-go/docent/recipes/internal/args"
)

// An Instance is one process or place that offers a service.
type Instance[T any] struct {
	Name       string // of the service; without a slash
	ID         string // of the instance; without a slash
	Address    string // a host name or an IP address; "" for none
	Port       int    // 0 for none; another client's instance may have any number, as with Curator
	SSLPort    int    // as Port
	Payload    T
	Registered time.Time // in milliseconds
	Kind       Kind
	URI        []URIPart // how to build a URI of the instance; nil for none
	Disabled   bool      // the instance is not to be used: see [WithDisabledField]; Spring has a mark of its own in the payload
}

// A URIPart is a part of a URI: a variable, such as "scheme" or "address", or text.
type URIPart struct {
	Value    string `json:"value"`
	Variable bool   `json:"variable"`
}

// A Kind says how long the znode of an instance exists.
type Kind int

const (
	// Dynamic instances exist until they are closed or the client's session ends. It is the default.
	Dynamic Kind = iota
	// Static instances exist until their znode is deleted.
	Static
	// Permanent instances exist until their znode is deleted. Curator's readers tell them from Static.
	Permanent
	// DynamicSequential instances have a znode with a number. They can be read, but not registered:
	// Curator adds a znode at each reconnection.
	DynamicSequential
)

// kindNames are the kinds in the format of Curator.
func kindNames() []string { return []string{"DYNAMIC", "STATIC", "PERMANENT", "DYNAMIC_SEQUENTIAL"} }

// String returns the kind's name in the format of Curator, as in "DYNAMIC".
func (k Kind) String() string {
	if names := kindNames(); k >= 0 && int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("Kind(%d)", int(k))
}

// faults returns what prevents the registration of the instance.
func (in *Instance[T]) faults(cfg *config) error {
	faults := []error{args.Element("name", in.Name), args.Element("ID", in.ID)}
	for name, port := range map[string]int{"port": in.Port, "SSL port": in.SSLPort} {
		if port < 0 || port > math.MaxUint16 {
			faults = append(faults, fmt.Errorf("%s %d: must be from 0 to %d", name, port, math.MaxUint16))
		}
	}
	if in.Kind < Dynamic || in.Kind > Permanent {
		faults = append(faults, fmt.Errorf("kind %v: must be Dynamic, Static or Permanent", in.Kind))
	}
	if in.Disabled && !cfg.disabled {
		faults = append(faults, errors.New("disabled: must not be set without the option WithDisabledField"))
	}
	return errors.Join(faults...)
}
