package kerberos

import (
	"context"
	"fmt"
	"time"

	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"

	"github.com/docent-go/docent/framework"
)

// renewAt is the part of a ticket's life that is left when the client logs in again.
const renewAt = 6

// A ticket is a ticket with what its owner has to know of it. It is immutable.
type ticket struct {
	body       messages.Ticket
	key        types.EncryptionKey // for the session with whom the ticket is for
	client     types.PrincipalName
	realm      string // of the client
	start, end time.Time
}

// newTicket returns the ticket of a KDC's reply.
func newTicket(reply messages.KDCRepFields) *ticket {
	part := reply.DecryptedEncPart
	t := &ticket{
		body:   reply.Ticket,
		key:    part.Key,
		client: reply.CName,
		realm:  reply.CRealm,
		start:  part.StartTime,
		end:    part.EndTime,
	}
	if t.start.IsZero() {
		t.start = part.AuthTime
	}
	return t
}

// valid reports whether the ticket has not expired.
func (t *ticket) valid() bool { return t != nil && time.Now().Before(t.end) }

// fresh reports whether the ticket is good for a while.
func (t *ticket) fresh() bool {
	return t != nil && time.Until(t.end) > t.end.Sub(t.start)/renewAt
}

// service returns a ticket for the server name, by a ticket-granting ticket.
func (t *ticket) service(
	ctx context.Context, realms *realms, name types.PrincipalName,
) (*ticket, error) {
	request, err := messages.NewTGSReq(t.client, t.realm, realms.Config, t.body, t.key, name, false)
	if err != nil {
		return nil, err
	}
	frame, err := request.Marshal()
	if err != nil {
		return nil, err
	}
	answer, err := realms.ask(ctx, t.realm, frame)
	if err != nil {
		return nil, refusal(err)
	}
	var reply messages.TGSRep
	if err := reply.Unmarshal(answer); err != nil {
		return nil, err
	}
	if err := reply.DecryptEncPart(t.key); err != nil {
		return nil, fmt.Errorf("%w: %w", framework.ErrAuthFailed, err)
	}
	if _, err := reply.Verify(realms.Config, request); err != nil {
		return nil, fmt.Errorf("%w: %w", framework.ErrAuthFailed, err)
	}
	if got := reply.DecryptedEncPart.SName; !got.Equal(name) || !reply.Ticket.SName.Equal(name) {
		return nil, fmt.Errorf("%w: the KDC answers with a ticket for %s",
			framework.ErrAuthFailed, got.PrincipalNameString())
	}
	return newTicket(reply.KDCRepFields), nil
}
