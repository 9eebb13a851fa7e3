package kerberos

import (
	"errors"
	"fmt"
	"slices"

	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
)

// sealing are the encryption types whose keys protect the last steps of an exchange. The
// older types have other formats there.
var sealing = []int32{
	etypeID.AES256_CTS_HMAC_SHA1_96,
	etypeID.AES128_CTS_HMAC_SHA1_96,
	etypeID.AES256_CTS_HMAC_SHA384_192,
	etypeID.AES128_CTS_HMAC_SHA256_128,
}

// loadConfig reads krb5.conf.
func loadConfig(path string) (*realms, error) {
	conf, err := config.Load(path)
	if err != nil && !errors.As(err, new(config.UnsupportedDirective)) {
		return nil, fmt.Errorf("kerberos: configuration: %w", err)
	}
	lib := &conf.LibDefaults
	foreign := func(id int32) bool { return !slices.Contains(sealing, id) }
	lib.DefaultTGSEnctypeIDs = slices.DeleteFunc(slices.Clone(lib.DefaultTGSEnctypeIDs), foreign)
	if len(lib.DefaultTGSEnctypeIDs) == 0 {
		return nil, fmt.Errorf("kerberos: configuration %s: default_tgs_enctypes: must have one of AES",
			path)
	}
	return &realms{Config: conf}, nil
}
