package framework

import "context"

// A Resolver returns the addresses that a host's name stands for, as
// net.DefaultResolver.LookupHost does.
type Resolver func(ctx context.Context, host string) (addrs []string, err error)
