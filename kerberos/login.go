package kerberos

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/jcmturner/gokrb5/v8/credentials"
	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/iana/patype"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"

	"github.com/docent-go/docent/framework"
)

// maxIterations bounds the work that a KDC may ask for to derive a key from a password.
const maxIterations = 1 << 20

// A secret is a principal's keys or its password.
type secret struct {
	creds *credentials.Credentials
	keys  map[int32]versioned // by encryption type; nil for a password
}

// A versioned key is one of a keytab.
type versioned struct {
	key     types.EncryptionKey
	version int
}

func passwordSecret(who principal, password string) secret {
	return secret{creds: who.credentials().WithPassword(password)}
}

// types returns the encryption types that the secret is good for, of those given.
func (s secret) types(of []int32) []int32 {
	return slices.DeleteFunc(slices.Clone(of), func(id int32) bool {
		_, ok := s.keys[id]
		return s.keys != nil && !ok
	})
}

// key returns the key for an encryption type, and its version.
func (s secret) key(who principal, id int32, hints types.PADataSequence) (types.EncryptionKey, int, error) {
	if s.keys != nil {
		v := s.keys[id]
		return v.key, v.version, nil
	}
	key, _, err := crypto.GetKeyFromPassword(s.creds.Password(), who.name, who.realm, id, hints)
	return key, 0, err
}

// loginBy returns the login of who by what load returns.
func loginBy(realms *realms, who principal, load func() (secret, error)) login {
	return func(ctx context.Context) (*ticket, error) {
		s, err := load()
		if err != nil {
			return nil, err
		}
		t, err := s.login(ctx, realms, who)
		if err != nil {
			return nil, fmt.Errorf("login of %s: %w", who, err)
		}
		return t, nil
	}
}

// login asks the KDC for a ticket-granting ticket, and proves to it who asks if it wants that.
func (s secret) login(ctx context.Context, realms *realms, who principal) (*ticket, error) {
	request, err := messages.NewASReqForTGT(who.realm, realms.Config, who.name)
	if err != nil {
		return nil, err
	}
	request.ReqBody.EType = s.types(realms.LibDefaults.DefaultTktEnctypeIDs)
	answer, err := askLogin(ctx, realms, request)
	var refused messages.KRBError
	if errors.As(err, &refused) && refused.ErrorCode == errorcode.KDC_ERR_PREAUTH_REQUIRED {
		proof, err := s.prove(who, request.ReqBody.EType, refused.EData)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", framework.ErrAuthFailed, err)
		}
		request.PAData = types.PADataSequence{proof}
		answer, err = askLogin(ctx, realms, request)
		if err != nil {
			return nil, refusal(err)
		}
	} else if err != nil {
		return nil, refusal(err)
	}
	var reply messages.ASRep
	if err := reply.Unmarshal(answer); err != nil {
		return nil, err
	}
	if err := affordable(reply.PAData); err != nil {
		return nil, err
	}
	if _, err := reply.Verify(realms.Config, s.creds, request); err != nil {
		return nil, fmt.Errorf("%w: %w", framework.ErrAuthFailed, err)
	}
	return newTicket(reply.KDCRepFields), nil
}

func askLogin(ctx context.Context, realms *realms, request messages.ASReq) ([]byte, error) {
	frame, err := request.Marshal()
	if err != nil {
		return nil, err
	}
	return realms.ask(ctx, request.ReqBody.Realm, frame)
}

// prove returns the time, encrypted by a key of an encryption type that the KDC wants.
func (s secret) prove(who principal, allowed []int32, hints []byte) (types.PAData, error) {
	var data types.PADataSequence
	if err := data.Unmarshal(hints); err != nil {
		return types.PAData{}, err
	}
	if err := affordable(data); err != nil {
		return types.PAData{}, err
	}
	id, err := wanted(data, allowed)
	if err != nil {
		return types.PAData{}, err
	}
	key, version, err := s.key(who, id, data)
	if err != nil {
		return types.PAData{}, err
	}
	now, err := types.GetPAEncTSEncAsnMarshalled()
	if err != nil {
		return types.PAData{}, err
	}
	sealed, err := crypto.GetEncryptedData(now, key, keyusage.AS_REQ_PA_ENC_TIMESTAMP, version)
	if err != nil {
		return types.PAData{}, err
	}
	value, err := sealed.Marshal()
	return types.PAData{PADataType: patype.PA_ENC_TIMESTAMP, PADataValue: value}, err
}

// wanted returns the encryption type that the KDC names first.
func wanted(hints types.PADataSequence, allowed []int32) (int32, error) {
	for _, hint := range hints {
		if hint.PADataType != patype.PA_ETYPE_INFO2 {
			continue
		}
		info, err := hint.GetETypeInfo2()
		if err != nil {
			return 0, err
		}
		if len(info) > 0 && slices.Contains(allowed, info[0].EType) {
			return info[0].EType, nil
		}
	}
	return 0, fmt.Errorf("the KDC wants none of the encryption types %v", allowed)
}

// affordable returns an error if a KDC asks for too much work.
func affordable(hints types.PADataSequence) error {
	for _, hint := range hints {
		if hint.PADataType != patype.PA_ETYPE_INFO2 {
			continue
		}
		info, err := hint.GetETypeInfo2()
		if err != nil {
			return err
		}
		for _, entry := range info {
			if len(entry.S2KParams) != 4 {
				continue // the default
			}
			if n := binary.BigEndian.Uint32(entry.S2KParams); n == 0 || n > maxIterations {
				return fmt.Errorf("the KDC asks for %d iterations: must be 1 to %d", n, maxIterations)
			}
		}
	}
	return nil
}
