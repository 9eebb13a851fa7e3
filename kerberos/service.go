package kerberos

import (
	"context"
	"net"
	"strings"

	"github.com/jcmturner/gokrb5/v8/iana/nametype"
	"github.com/jcmturner/gokrb5/v8/types"
)

// A service says how the principals of servers are called.
type service struct {
	name      string // as in name/host
	fixed     string // name/host for all servers; "" for none
	canonical bool
}

// principal returns the principal of the server host.
func (s service) principal(ctx context.Context, host string) (types.PrincipalName, error) {
	if s.fixed != "" {
		return types.NewPrincipalName(nametype.KRB_NT_SRV_HST, s.fixed), nil
	}
	if s.canonical {
		name, err := canonical(ctx, host)
		if err != nil {
			return types.PrincipalName{}, err
		}
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(host, ".")) // as other libraries do
	return types.PrincipalName{NameType: nametype.KRB_NT_SRV_HST, NameString: []string{s.name, host}}, nil
}

// canonical returns the name of the host's first address, or host if that has none.
func canonical(ctx context.Context, host string) (string, error) {
	addrs, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		return "", endedBy(ctx, err)
	}
	names, err := net.DefaultResolver.LookupAddr(ctx, addrs[0])
	if ctx.Err() != nil {
		return "", endedBy(ctx, err)
	}
	if err != nil || len(names) == 0 {
		return host, nil //nolint:nilerr // an address without a name is not a fault
	}
	return names[0], nil
}
