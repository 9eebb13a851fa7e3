// Package kerberos authenticates a client to ZooKeeper's servers by Kerberos, which is the
// mechanism GSSAPI of SASL (RFC 4752). [New] returns what [framework.WithSASL] takes.
//
// The package is a module of its own. Programs that import only other packages of docent don't get
// its dependencies.
//
// Stability: may change.
//
// # Tickets
//
// A [Mechanism] asks the KDC for a service ticket whenever the client connects. It keeps the
// ticket-granting ticket and logs in again before that expires. If the KDC can't be reached, it
// takes an earlier service ticket that is still valid. It starts no goroutine, so there is
// nothing to close. A connection that a server has accepted outlives its ticket.
//
// # Names
//
// The service principal is "zookeeper/host", where host is what the connect string calls the
// server. docent looks up no other name for it, unlike Java's client. See [WithServiceName],
// [WithServicePrincipal] and [WithCanonicalHost]. Servers have to be in the client's realm:
// tickets from other realms are not supported. ZooKeeper names the client by its principal, as
// in "sasl:app@EXAMPLE.TEST", unless the servers shorten principals.
//
// # Configuration
//
// The realms, their KDCs and the encryption types come from krb5.conf: see [WithConfigFile]. KDCs
// are asked over TCP, in the order of the file but for the one that answered last, which comes
// first. Service tickets have AES keys. The parser knows no include directives.
//
// # Security
//
// The server proves that it knows the service's key before the client takes the connection for
// authenticated. The requests that follow are neither signed nor encrypted: use
// [framework.WithTLS] as well. Passwords, keys and tickets show in no error and no log.
//
// # Errors
//
// Authentication fails if the KDC refuses the credential or knows no such service, or if a cached
// ticket has expired. It also fails if a server does not prove its identity. The error then wraps
// [framework.ErrAuthFailed], and the client's state is [framework.AuthFailed]. If no KDC answers,
// the attempt to connect has failed like any other. In both cases the client tries again, with
// growing pauses.
package kerberos
