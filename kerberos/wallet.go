package kerberos

import (
	"context"
	"errors"
	"sync"

	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

// A wallet keeps the tickets of one principal.
type wallet struct {
	login  login // immutable
	realms *realms

	mu       sync.Mutex // guards following; not held while a KDC is asked
	granting *ticket    // nil for none yet
	services map[string]*ticket
}

// ticket returns a new ticket for the server name. If no KDC answers, it returns an earlier
// ticket that is still valid.
func (w *wallet) ticket(ctx context.Context, name types.PrincipalName) (*ticket, error) {
	t, err := w.request(ctx, name)
	outage := errors.Is(err, errUnreachable) && ctx.Err() == nil
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		if w.services == nil {
			w.services = make(map[string]*ticket)
		}
		w.services[name.PrincipalNameString()] = t
		return t, nil
	}
	earlier := w.services[name.PrincipalNameString()]
	if outage && earlier.valid() {
		return earlier, nil
	}
	return nil, err
}

func (w *wallet) request(ctx context.Context, name types.PrincipalName) (*ticket, error) {
	granting, kept, err := w.grantingTicket(ctx)
	if err != nil {
		return nil, err
	}
	t, err := granting.service(ctx, w.realms, name)
	if err == nil || !kept || !outdated(err) {
		return t, err
	}
	if granting, err = w.renewed(ctx); err != nil {
		return nil, err
	}
	return granting.service(ctx, w.realms, name)
}

// outdated reports whether the KDC refused a ticket-granting ticket, as after it has lost or
// changed its keys.
func outdated(err error) bool {
	var refused messages.KRBError
	return errors.As(err, &refused) && refused.ErrorCode != errorcode.KDC_ERR_S_PRINCIPAL_UNKNOWN
}

// grantingTicket returns a ticket-granting ticket, and whether it is one that was kept.
func (w *wallet) grantingTicket(ctx context.Context) (t *ticket, kept bool, err error) {
	w.mu.Lock()
	t = w.granting
	w.mu.Unlock()
	if t.fresh() {
		return t, true, nil
	}
	t, err = w.renewed(ctx)
	return t, false, err
}

func (w *wallet) renewed(ctx context.Context) (*ticket, error) {
	t, err := w.login(ctx)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	w.granting = t
	w.mu.Unlock()
	return t, nil
}
