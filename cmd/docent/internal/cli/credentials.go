package cli

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
)

// AuthVariables are the environment variables that lead to credentials. They are for docent alone: a
// command that it runs must not get them.
func AuthVariables() []string { return []string{"DOCENT_AUTH", "DOCENT_AUTH_FILE"} }

// A credential is a secret, so no error shows it.
type credential struct {
	scheme string
	secret []byte
}

// credentials returns those of --auth-file, else those of DOCENT_AUTH, which has lines of the same
// form.
func (a *App) credentials() ([]credential, error) {
	path := a.settings.AuthFile
	if path == "" {
		return parseCredentials("DOCENT_AUTH", a.Getenv("DOCENT_AUTH"))
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("auth file: %w", err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("auth file %s: others may read it (mode %#o): chmod 600 %[1]s", path, info.Mode().Perm())
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("auth file: %w", err)
	}
	return parseCredentials("auth file "+path, string(text))
}

// HasCredentials reports whether the settings give credentials.
func (a *App) HasCredentials() (bool, error) {
	list, err := a.credentials()
	if err != nil {
		return false, Usage(err)
	}
	return len(list) > 0, nil
}

// parseCredentials returns the credentials of a text with lines scheme:credential. Empty lines and
// lines that begin with # are left out.
func parseCredentials(source, text string) ([]credential, error) {
	var list []credential
	var faults []error
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimRight(line, "\r\n")
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		scheme, secret, ok := strings.Cut(line, ":")
		if !ok || scheme == "" || secret == "" {
			faults = append(faults, fmt.Errorf("%s: line %d: must be scheme:credential", source, number))
			continue
		}
		list = append(list, credential{scheme, []byte(secret)})
	}
	return list, errors.Join(faults...)
}
