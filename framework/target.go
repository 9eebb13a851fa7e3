package framework

import "context"

// A Resolver returns the addresses of a host's name, as net.DefaultResolver.LookupHost does.
type Resolver func(ctx context.Context, host string) (addrs []string, err error)
