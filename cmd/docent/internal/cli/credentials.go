package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"unicode/utf8"
)

// AuthVariables are the environment variables that lead to credentials. They are for docent alone: a
// command that it runs must not get them.
func AuthVariables() []string { return []string{"DOCENT_AUTH", "DOCENT_AUTH_FILE"} }

// A credential is a secret, so no error shows it.
type credential struct {
	scheme string
	secret []byte
}

// maxSecret bounds the size of a file with secrets.
const maxSecret = 1 << 20

// readCredentials returns those of --auth-file, else those of DOCENT_AUTH, which has lines of the same form.
// Its caller calls it once: the file may be a pipe.
func (a *App) readCredentials() ([]credential, error) {
	path, text := a.settings.AuthFile, a.Getenv("DOCENT_AUTH")
	if path == "" && text == "" {
		return nil, nil
	}
	if path == "" {
		return parseCredentials("DOCENT_AUTH", text)
	}
	text, err := ReadSecret(path)
	if err != nil {
		return nil, fmt.Errorf("auth file %w", err)
	}
	return parseCredentials("auth file "+path, text)
}

// ReadSecret returns the text of a file that its owner alone may read. It may be a pipe. An error begins with the path.
func ReadSecret(path string) (string, error) {
	text, err := readSecret(path)
	if fault := (*fs.PathError)(nil); errors.As(err, &fault) {
		err = fmt.Errorf("%s: %w", path, fault.Err)
	}
	return text, err
}

func readSecret(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", err
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("%s: others may read it (mode %#o): chmod 600 %[1]s", path, info.Mode().Perm())
	}
	text, err := io.ReadAll(io.LimitReader(file, maxSecret+1))
	if err == nil && len(text) > maxSecret {
		err = fmt.Errorf("%s: has more than %d bytes", path, maxSecret)
	}
	return string(text), err
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
// lines that begin with # are left out. A text without any is refused: who gives one wants no open znodes.
func parseCredentials(source, text string) ([]credential, error) {
	text = strings.TrimPrefix(text, "\ufeff") // the byte order mark of some editors
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return nil, fmt.Errorf("%s: is no text in UTF-8", source)
	}
	var list []credential
	var faults []error
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimRight(line, "\r\n")
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		c, fault := parseCredential(line)
		if fault != "" {
			faults = append(faults, fmt.Errorf("%s: line %d: %s", source, number, fault))
			continue
		}
		list = append(list, c)
	}
	if len(list)+len(faults) == 0 {
		return nil, fmt.Errorf("%s: has no credential: each line must be scheme:credential", source)
	}
	return list, errors.Join(faults...)
}

// parseCredential returns the credential of a line, or what is wrong with the line, without its text.
func parseCredential(line string) (c credential, fault string) {
	scheme, secret, ok := strings.Cut(line, ":")
	user, _, pair := strings.Cut(secret, ":")
	switch {
	case !ok || scheme == "" || secret == "" || strings.ContainsAny(scheme, " \t"):
		return c, "must be scheme:credential"
	case scheme == "digest" && (!pair || user == ""):
		return c, "must be digest:user:password"
	case scheme == "sasl":
		return c, "docent's command has no SASL and no Kerberos"
	}
	return credential{scheme, []byte(secret)}, ""
}
