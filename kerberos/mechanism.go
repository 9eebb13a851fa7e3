package kerberos

import (
	"context"
	"errors"
	"fmt"

	"github.com/docent-go/docent/framework"
)

// A Mechanism is GSSAPI with the identity of one principal. Several clients may share
// one. All methods may be called concurrently.
type Mechanism struct {
	service service // immutable
	wallet  *wallet
}

// New returns the mechanism that proves the identity of credential. It reads krb5.conf and the
// credential's file, and sends nothing. The error names every faulty argument.
func New(credential Credential, opts ...Option) (*Mechanism, error) {
	cfg := settings{service: service{name: DefaultServiceName}, file: defaultConfigFile()}
	var faults []error
	if credential == nil {
		faults = append(faults, errors.New("kerberos: credential: must not be nil"))
	}
	for i, opt := range opts {
		if opt == nil {
			faults = append(faults, fmt.Errorf("kerberos: option %d: must not be nil", i))
			continue
		}
		opt.apply(&cfg)
	}
	realms, err := loadConfig(cfg.file)
	faults = append(faults, cfg.validate(), err)
	var as login
	if credential != nil && err == nil {
		as, err = credential.prepare(realms)
		faults = append(faults, err)
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	w := &wallet{login: as, realms: realms}
	return &Mechanism{service: cfg.service, wallet: w}, nil
}

// Start is part of [framework.Mechanism]. It gets a ticket for the server host. It obeys ctx
// at every request to a KDC and at every lookup of a name.
func (m *Mechanism) Start(ctx context.Context, host string) (exchange framework.Exchange, err error) {
	defer guard(&err)
	name, err := m.service.principal(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("Kerberos: name of the server: %w", err)
	}
	t, err := m.wallet.ticket(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("Kerberos: ticket for %s: %w", name.PrincipalNameString(), err)
	}
	return newExchange(t), nil
}
