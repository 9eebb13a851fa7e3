package framework

import (
	"context"

	"github.com/docent-go/docent/internal/usercall"
)

// A Resolver returns the addresses of a host's name, as net.DefaultResolver.LookupHost does.
type Resolver func(ctx context.Context, host string) (addrs []string, err error)

// bounded returns a Resolver that returns when its context ends, and fails if resolve panics.
func bounded(resolve Resolver, calls *usercall.Calls) Resolver {
	return func(ctx context.Context, host string) ([]string, error) {
		return usercall.Bounded(ctx, calls, func() ([]string, error) { return resolve(ctx, host) }, nil)
	}
}
