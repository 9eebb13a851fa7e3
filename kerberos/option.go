package kerberos

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

const (
	// DefaultServiceName is the first part of the servers' principals unless they are
	// configured otherwise, as in Java's client.
	DefaultServiceName = "zookeeper"

	// systemConfigFile is where Kerberos is configured for the whole machine.
	systemConfigFile = "/etc/krb5.conf"
)

// An Option configures a [Mechanism].
type Option interface{ apply(*settings) }

type optionFunc func(*settings)

func (f optionFunc) apply(s *settings) { f(s) }

// settings are what the options have recorded.
type settings struct {
	service service
	file    string
}

func (s *settings) validate() error {
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf(format, args...))
	}
	name, host, _ := strings.Cut(s.service.fixed, "/")
	switch {
	case s.service.name == "" || strings.ContainsAny(s.service.name, "/@"):
		fault("kerberos: service name %q: must be one part of a principal", s.service.name)
	case s.service.fixed != "" && (name == "" || host == "" || strings.ContainsAny(host, "/@")):
		fault("kerberos: service principal %q: must be name/host without a realm", s.service.fixed)
	case s.service.fixed != "" && s.service.canonical:
		fault("kerberos: service principal: must not be given together with WithCanonicalHost")
	}
	return errors.Join(faults...)
}

// WithServiceName sets the first part of the servers' principals. It is what Java's client calls
// zookeeper.sasl.client.username. The default is [DefaultServiceName].
func WithServiceName(name string) Option {
	return optionFunc(func(s *settings) { s.service.name = name })
}

// WithServicePrincipal sets one principal ("name/host", in the client's realm) for all servers,
// whatever the connect string calls them. It is what Java's client calls
// zookeeper.server.principal. The default is a principal for each server's name.
func WithServicePrincipal(principal string) Option {
	return optionFunc(func(s *settings) { s.service.fixed = principal })
}

// WithCanonicalHost makes the client look up the name of each server's first address in the DNS,
// and ask for a ticket for that name. It is what Java's client does by default
// (zookeeper.sasl.client.canonicalize.hostname). If the address has no name, the one in the connect
// string is taken. The DNS then determines the principal. The default is the name in the connect
// string.
func WithCanonicalHost() Option {
	return optionFunc(func(s *settings) { s.service.canonical = true })
}

// WithConfigFile sets the file that names realms and KDCs. [New] reads it once. The default
// is the first file that the environment variable KRB5_CONFIG names, else /etc/krb5.conf.
func WithConfigFile(path string) Option {
	return optionFunc(func(s *settings) { s.file = path })
}

func defaultConfigFile() string {
	if path, _, _ := strings.Cut(os.Getenv("KRB5_CONFIG"), string(os.PathListSeparator)); path != "" {
		return path
	}
	return systemConfigFile
}
