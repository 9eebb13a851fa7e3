package kerberos

import (
	"time"

	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"

	"github.com/docent-go/docent/framework"
)

// NewExchange returns an exchange with a made-up ticket, whose session key is key.
func NewExchange(key types.EncryptionKey) framework.Exchange {
	name := types.NewPrincipalName(1, "app")
	return newExchange(&ticket{
		body: messages.Ticket{
			TktVNO:  5,
			Realm:   "DOCENT.TEST",
			SName:   types.NewPrincipalName(3, "zookeeper/localhost"),
			EncPart: types.EncryptedData{EType: key.KeyType, KVNO: 1, Cipher: []byte("sealed for the server")},
		},
		key:    key,
		client: name,
		realm:  "DOCENT.TEST",
		end:    time.Now().Add(time.Hour),
	})
}
