package discovery

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/usercall"
	"github.com/docent-go/docent/recipes/node"
)

// A Registration keeps the znode of an instance: it creates the znode again if the client's session
// has ended or another client has deleted it. Its methods may be called concurrently.
type Registration[T any] struct {
	client *framework.Client
	cfg    *config
	path   string
	node   *node.Node

	updating chan struct{} // capacity 1: full while an Update determines the data

	mu   sync.Mutex // guards following; never held across a request, or code of the payload's
	in   Instance[T]
	next *Instance[T] // of the Update that replaces the data; nil for none
}

// Instance returns the instance as it was registered or last updated, with its ID.
func (reg *Registration[T]) Instance() Instance[T] {
	reg.mu.Lock()
	defer reg.mu.Unlock()
	return reg.in
}

// Await waits until the znode exists with the latest data, or ctx ends: then the error wraps ctx's.
// It returns [node.ErrTaken] at once if another client registered the instance, and otherwise errors
// as [node.Node.Await] does. The Registration goes on trying all the while. The znode of an instance
// that is not [Dynamic] belongs to no client: one with the same kind, address and ports is the same
// instance, which a process registers again when it starts. One with others is another client's.
func (reg *Registration[T]) Await(ctx context.Context) error {
	return recipe.CallError(ctx, reg.client, "await", reg.path, reg.node.Await(ctx))
}

// Update replaces the instance, now and whenever its znode is created again, and waits until the data
// is written. If that fails, or ctx ends first, Update returns an error, and the Registration
// writes the data when it can. If the instance is faulty or too large, or ctx ends while another
// call determines the data, Update changes nothing. Of
// concurrent calls, the last one determines both Instance and the znode. Name, ID and Kind must be
// those of the registration; an empty ID means its own, and a zero Registered the present one.
func (reg *Registration[T]) Update(ctx context.Context, in Instance[T]) error {
	usercall.Require("ctx", ctx != nil)
	written, err := reg.replace(ctx, in)
	if err == nil {
		err = written(ctx)
	}
	return recipe.CallError(ctx, reg.client, "update", reg.path, err)
}

// replace makes the instance the registration's and its data the znode's, in one order for all
// callers. written waits until the data is written.
func (reg *Registration[T]) replace(ctx context.Context, in Instance[T]) (written func(context.Context) error, err error) {
	if err := reg.takeTurn(ctx); err != nil {
		return nil, err
	}
	defer func() { <-reg.updating }() // even if an ACL provider panics
	present := reg.Instance()
	in = in.completed(present.ID, present.Registered)
	if in.Name != present.Name || in.ID != present.ID || in.Kind != present.Kind {
		return nil, fmt.Errorf("instance %q of %q, %v: must have the name, the ID and the kind of the registration",
			in.ID, in.Name, in.Kind)
	}
	data, err := encode(&in, reg.cfg)
	if err != nil {
		return nil, err
	}
	reg.mu.Lock()
	reg.next = &in
	reg.mu.Unlock()
	defer func() {
		reg.mu.Lock()
		if reg.next = nil; written != nil {
			reg.in = in
		}
		reg.mu.Unlock()
	}()
	return reg.node.Replace(data)
}

// takeTurn waits for the Update that determines the data. The payload's encoding and an ACL provider may take
// their time.
func (reg *Registration[T]) takeTurn(ctx context.Context) error {
	select {
	case reg.updating <- struct{}{}:
		return nil
	default: // even if ctx has ended, the turn is taken if it is free
	}
	select {
	case reg.updating <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// describedBy reports whether the data of a znode is that of the instance as it is now, or is about to
// be. It decodes no payload.
func (reg *Registration[T]) describedBy(data []byte) bool {
	there, err := decode[json.RawMessage](data)
	reg.mu.Lock()
	in, next := reg.in, reg.next
	reg.mu.Unlock()
	return err == nil && there.Kind == in.Kind &&
		(there.endpoint() == in.endpoint() || next != nil && there.endpoint() == next.endpoint())
}

// completed returns the instance with the ID and the time, if it has none of its own.
func (in Instance[T]) completed(id string, at time.Time) Instance[T] {
	in.ID = cmp.Or(in.ID, id)
	if in.Registered.IsZero() {
		in.Registered = at
	}
	in.Registered = in.Registered.UTC().Truncate(time.Millisecond)
	return in
}

// endpoint returns what tells instances of one ID apart.
func (in *Instance[T]) endpoint() string {
	return fmt.Sprintf("%q %d %d", in.Address, in.Port, in.SSLPort)
}

// Close ends the registration. It deletes the znode if the instance is [Dynamic]: it is gone, or the
// client deletes it in the background. The znode of another instance remains until it is deleted
// with [framework.Client.Delete]. If ctx ends first, the error wraps ctx's. A further Close
// returns nil.
func (reg *Registration[T]) Close(ctx context.Context) error {
	return recipe.CallError(ctx, reg.client, "close", reg.path, reg.node.Close(ctx))
}
