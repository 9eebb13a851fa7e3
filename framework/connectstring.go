package framework

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/docent-go/docent/internal/errtype"
)

// DefaultPort is the port of a server that the connect string names without one.
const DefaultPort = 2181

// A connectString is a parsed connect string: "h1:2181,h2,[::1]:2183/chroot".
type connectString struct {
	servers []string // host:port, at least one
	chroot  string   // "" or a valid path that is not "/"
}

// parseConnectString returns the parsed s, or all faults of s. If s has an @, something before it may
// be a secret, wherever its commas, colons and slashes cut it. Then there is one fault, which shows
// nothing before the last @.
func parseConnectString(s string) (connectString, error) {
	parsed, faults := parseServersAndChroot(s)
	switch {
	case len(faults) == 0:
		return parsed, nil
	case strings.Contains(s, "@"):
		return connectString{}, fmt.Errorf("framework: connect string %q: must be servers and a chroot, as in "+
			"\"h1:2181,h2:2181/chroot\", without a scheme and without a credential, see WithAuth", redacted(s))
	case strings.Contains(s, "://"):
		return connectString{}, fmt.Errorf("framework: connect string %q: must not have a scheme", errtype.Shortened(s))
	}
	return connectString{}, errors.Join(faults...)
}

// parseServersAndChroot is parseConnectString with faults that show every value.
func parseServersAndChroot(s string) (parsed connectString, faults []error) {
	hosts, chroot := s, ""
	if i := strings.IndexByte(s, '/'); i >= 0 {
		hosts, chroot = s[:i], s[i:]
	}
	if chroot != "" && chroot != "/" {
		if err := ValidatePath(chroot); err != nil {
			faults = append(faults, fmt.Errorf("framework: connect string: chroot: %w", err))
		}
		if strings.Contains(chroot, ",") {
			faults = append(faults, fmt.Errorf("framework: connect string: chroot %q: must not contain a comma: "+
				"it is the same for all servers, and follows the last", errtype.Shortened(chroot)))
		}
		parsed.chroot = chroot
	}
	if strings.TrimSpace(hosts) == "" {
		return parsed, append(faults, fmt.Errorf("framework: connect string %q: must name at least one server", errtype.Shortened(s)))
	}
	for entry := range strings.SplitSeq(hosts, ",") {
		server, err := parseServer(strings.TrimSpace(entry))
		if err != nil {
			faults = append(faults, fmt.Errorf("framework: connect string: server %q: %w", errtype.Shortened(entry), err))
			continue
		}
		parsed.servers = append(parsed.servers, server)
	}
	return parsed, faults
}

// parseSourced is parseConnectString for a client whose servers come from a source: s may be only a
// chroot, or empty.
func parseSourced(s string) (connectString, error) {
	if s != "" && !strings.HasPrefix(s, "/") {
		return parseConnectString(s)
	}
	parsed, err := parseConnectString("source" + s)
	parsed.servers = nil
	return parsed, err
}

// parseServer returns entry as host:port.
func parseServer(entry string) (string, error) {
	host, port, err := cutPort(entry)
	if err != nil {
		return "", err
	}
	if host == "" {
		return "", errors.New("host must not be empty")
	}
	isForeign := func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune("[]/,", r) }
	if i := strings.IndexFunc(host, isForeign); i >= 0 {
		return "", fmt.Errorf("host must not contain %q", host[i])
	}
	if strings.HasPrefix(entry, "[") && net.ParseIP(strings.SplitN(host, "%", 2)[0]) == nil {
		return "", errors.New("must be a valid IPv6 address within the brackets")
	}
	n, err := strconv.Atoi(port)
	if err != nil || n < 1 || n > 65535 {
		return "", fmt.Errorf("port %q: must be a number from 1 to 65535", port)
	}
	return net.JoinHostPort(host, strconv.Itoa(n)), nil
}

// cutPort cuts entry in host and port. The port is ZooKeeper's if entry has none.
func cutPort(entry string) (host, port string, err error) {
	bracketed := strings.HasPrefix(entry, "[")
	switch {
	case strings.Contains(entry, "@"):
		return "", "", errors.New("must not contain a credential, see WithAuth")
	case bracketed && strings.HasSuffix(entry, "]"):
		return entry[1 : len(entry)-1], strconv.Itoa(DefaultPort), nil
	case bracketed, strings.Count(entry, ":") == 1:
		if host, port, err = net.SplitHostPort(entry); err != nil {
			return "", "", errors.New("must be host, host:port or [IPv6]:port")
		}
		return host, port, nil
	case strings.Contains(entry, ":"):
		return "", "", errors.New("an IPv6 address must stand in brackets")
	}
	return entry, strconv.Itoa(DefaultPort), nil
}

// redacted returns s without a possible credential before its last @.
func redacted(s string) string {
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		return "***" + s[i:]
	}
	return s
}
