package contender

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/goid"
	"github.com/docent-go/docent/internal/usercall"
)

// OwnerKey is the key under which a context carries an owner, which has a name and a party.
type OwnerKey struct{}

// NewParty returns a random party.
func NewParty() string { return fmt.Sprintf("%016x", rand.Uint64()) }

// OwnerOf returns the name and the party of the owner that ctx carries, or else the party of the calling
// goroutine, which has no name.
func OwnerOf(ctx context.Context, c *framework.Client) (name, party string) {
	usercall.Require("ctx", ctx != nil)
	if owner, ok := ctx.Value(OwnerKey{}).(interface {
		fmt.Stringer
		Party() string
	}); ok {
		return owner.String(), owner.Party()
	}
	return "", PartyOfGoroutine(c, goid.ID())
}

type partyKey struct{}

// PartyOfGoroutine returns the party of a goroutine that uses the client: the client's random prefix
// and the goroutine's number.
func PartyOfGoroutine(c *framework.Client, number uint64) string {
	prefix := c.Shared(partyKey{}, func() any { return NewParty() }).(string)
	party := make([]byte, 0, 64) // so that the string is the one allocation
	party = append(append(party, prefix...), '-')
	return string(strconv.AppendUint(party, number, 10))
}
