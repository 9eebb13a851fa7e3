package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// Settings are the global flags, from the command line, the environment, the context's entry in the
// file, or their defaults, in this order.
type Settings struct {
	Connect string // servers and chroot
	Context string // the name of the context in the file, "" for none
	// Protected reports whether the context demands its name before a command destroys something.
	Protected bool

	AuthFile   string
	TLS        bool
	CA         string
	Cert       string
	Key        string
	ServerName string

	Namespace      string
	Compress       bool
	SessionTimeout time.Duration
	LeaseMargin    time.Duration // 0 for the client's default
	Timeout        time.Duration // of a query

	Output  Format
	NoColor bool
	Quiet   bool
	Verbose bool

	config string // the file's path
}

// defaultTimeout bounds a query if --timeout does not.
const defaultTimeout = 10 * time.Second

// flagValues are the global flags as pflag has them.
type flagValues struct {
	set    *pflag.FlagSet
	values Settings
	given  []string // names of the flags on the command line
}

// define adds the global flags to set.
func (f *flagValues) define(set *pflag.FlagSet) {
	f.set = set
	v := &f.values
	v.Output = Text
	set.StringVar(&v.Connect, "connect", "", "servers and chroot, as `hosts`: zk1:2181,zk2:2181/app")
	set.StringVar(&v.Context, "context", "", "use the settings of this `name` in the file")
	set.StringVar(&v.config, "config", "", "the `file` of contexts")
	set.StringVar(&v.AuthFile, "auth-file", "", "a `file` with lines scheme:credential, which only its owner may read; no SASL or Kerberos")
	set.BoolVar(&v.TLS, "tls", false, "connect by TLS")
	set.StringVar(&v.CA, "ca", "", "trust the certificates in this `file`, instead of the system's; turns TLS on")
	set.StringVar(&v.Cert, "cert", "", "the client's certificate, a `file`; turns TLS on")
	set.StringVar(&v.Key, "key", "", "the key of --cert, a `file`")
	set.StringVar(&v.ServerName, "server-name", "", "verify this `name`, instead of each server's; turns TLS on")
	set.StringVar(&v.Namespace, "namespace", "", "put all paths below this `path`")
	set.BoolVar(&v.Compress, "compress", false, "data is gzipped, as by Curator's enableCompression")
	DurationVar(set, &v.SessionTimeout, "session-timeout", "", 30*time.Second, "ask the servers for this timeout")
	DurationVar(set, &v.LeaseMargin, "lease-margin", "", 0, "end a lease so long before the session can expire (default: the client's)")
	DurationVar(set, &v.Timeout, "timeout", "", defaultTimeout, "give a query, and connecting, so long")
	set.VarP(&v.Output, "output", "o", "text, wide, json, jsonl or name; of doctor also svg or dot")
	set.BoolVar(&v.NoColor, "no-color", false, "no colour on a terminal")
	set.BoolVarP(&v.Quiet, "quiet", "q", false, "say nothing but errors on standard error")
	set.BoolVarP(&v.Verbose, "verbose", "v", false, "say more on standard error")
}

// note notes which flags the command line has. Later ones are from the environment and the file.
func (f *flagValues) note() {
	f.set.VisitAll(func(flag *pflag.Flag) {
		if flag.Changed {
			f.given = append(f.given, flag.Name)
		}
	})
}

// GivenFlags returns the global flags of the command line, and the context, as arguments of another run of
// docent. The environment and the file have the rest.
func (a *App) GivenFlags() []string {
	var args []string
	for _, name := range a.flags.given {
		args = append(args, "--"+name+"="+a.flags.set.Lookup(name).Value.String())
	}
	if name := a.settings.Context; name != "" && !a.Given("context") { // the file's current one may change
		args = append(args, "--context="+name)
	}
	return args
}

// fill sets each flag that is not set yet to the value that lookup finds for it. source names where
// the value is from.
func (f *flagValues) fill(lookup func(flag string) (value, source string, ok bool)) error {
	var fault error
	f.set.VisitAll(func(flag *pflag.Flag) {
		value, source, ok := lookup(flag.Name)
		if flag.Changed || !ok || fault != nil {
			return
		}
		if err := f.set.Set(flag.Name, value); err != nil {
			fault = Usage(fmt.Errorf("%s: %w", source, err))
		}
	})
	return fault
}

// environment is the lookup of fill for the environment: DOCENT_CA for --ca.
func (a *App) environment(flag string) (value, source string, ok bool) {
	name := "DOCENT_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
	value = a.Getenv(name)
	return value, name, value != ""
}

// Getenv returns the value of the environment variable, "" if there is none.
func (a *App) Getenv(name string) string {
	for _, variable := range slices.Backward(a.Env) { // the last one counts
		if key, value, ok := strings.Cut(variable, "="); ok && key == name {
			return value
		}
	}
	return ""
}
