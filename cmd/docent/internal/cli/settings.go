package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// A contextFile is the file of contexts.
type contextFile struct {
	Current  string                    `json:"current"`
	Contexts map[string]map[string]any `json:"contexts"`
}

// protectedKey is the one key of a context that is no flag.
const protectedKey = "protected"

// contextKeys are the flags that a context may set, with _ for -.
func contextKeys() []string {
	return []string{
		"connect", "auth_file", "tls", "ca", "cert", "key", "server_name", "namespace", "compress",
		"session_timeout", "lease_margin", "timeout", protectedKey,
	}
}

// Settings returns the global settings. It is for a command that runs.
func (a *App) Settings() Settings { return a.settings }

// Given reports whether the command line has the global flag. The environment and the file don't count.
func (a *App) Given(flag string) bool { return slices.Contains(a.flags.given, flag) }

// load completes the flags from the environment and the file.
func (a *App) load() error {
	if err := a.loadFlags(); err != nil {
		return err
	}
	return a.LoadContexts()
}

// loadFlags completes the flags from the environment.
func (a *App) loadFlags() error {
	a.flags.note()
	err := a.flags.fill(a.environment)
	a.settings = a.flags.values
	return err
}

// LoadContexts completes the flags from the file of contexts.
func (a *App) LoadContexts() error {
	file, err := a.readContexts()
	if err != nil {
		return Usage(err)
	}
	v := &a.flags.values
	if v.Context == "" {
		v.Context = file.Current
	}
	entry, ok := file.Contexts[v.Context]
	if !ok && v.Context != "" {
		return Usage(fmt.Errorf("context %q: the file has %s", v.Context, known(file)))
	}
	v.Protected, _ = entry[protectedKey].(bool)
	err = a.flags.fill(func(flag string) (value, source string, ok bool) {
		key := strings.ReplaceAll(flag, "-", "_")
		source = fmt.Sprintf("context %q: %s", v.Context, key)
		switch set := entry[key].(type) {
		case string:
			return set, source, true
		case bool:
			return strconv.FormatBool(set), source, true
		}
		return "", "", false
	})
	if err != nil {
		return err
	}
	a.settings = a.flags.values
	return a.settings.check()
}

// check returns what is wrong with settings that are well formed one by one.
func (s *Settings) check() error {
	if (s.Cert == "") != (s.Key == "") {
		return Usage(errors.New("--cert and --key: one needs the other"))
	}
	if s.Timeout <= 0 {
		return Usage(fmt.Errorf("--timeout %v: must be positive", s.Timeout))
	}
	return nil
}

// checkPicture refuses a picture of a command that draws none.
func (a *App) checkPicture(cmd *cobra.Command) error {
	draws := a.settings.Output == SVG || a.settings.Output == DOT
	if draws && cmd.Annotations[Pictures] == "" {
		return Usage(fmt.Errorf("--output %s: %s draws nothing; docent doctor does", a.settings.Output, cmd.Name()))
	}
	return nil
}

// readContexts reads the file of contexts. A default file may be missing. If it can't be read, as that of
// another user's home, docent says so and does without.
func (a *App) readContexts() (contextFile, error) {
	path, asked := a.flags.values.config, true
	if path == "" {
		path, asked = a.defaultConfig(), false
	}
	if path == "" {
		return contextFile{}, nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && !asked {
		return contextFile{}, nil
	}
	if err != nil && !asked {
		a.Say("contexts are left out: %v", err)
		return contextFile{}, nil
	}
	if err != nil {
		return contextFile{}, fmt.Errorf("read contexts: %w", err)
	}
	file, err := parseContexts(text)
	if err != nil {
		return contextFile{}, fmt.Errorf("contexts in %s: %w", path, err)
	}
	return file, nil
}

// defaultConfig returns the path of the file if no flag gives one, "" if there is no home.
func (a *App) defaultConfig() string {
	dir := a.Getenv("XDG_CONFIG_HOME")
	if home := a.Getenv("HOME"); dir == "" && home != "" {
		dir = filepath.Join(home, ".config")
	}
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, "docent", "config.json")
}

// parseContexts returns the contexts of a file. Unknown keys and values of other types are errors.
func parseContexts(text []byte) (contextFile, error) {
	var file contextFile
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&file); err != nil {
		return contextFile{}, err
	}
	var faults []error
	for name, entry := range file.Contexts {
		for key, value := range entry {
			if fault := contextFault(key, value); fault != "" {
				faults = append(faults, fmt.Errorf("context %q: %s: %s", name, key, fault))
			}
		}
	}
	return file, errors.Join(faults...)
}

func contextFault(key string, value any) string {
	_, isText := value.(string)
	_, isBool := value.(bool)
	wantsBool := slices.Contains([]string{"tls", "compress", protectedKey}, key)
	switch {
	case !slices.Contains(contextKeys(), key):
		return "unknown key; known are " + strings.Join(contextKeys(), ", ")
	case wantsBool && !isBool:
		return "must be true or false"
	case !wantsBool && !isText:
		return "must be a string"
	}
	return ""
}

func known(file contextFile) string {
	if len(file.Contexts) == 0 {
		return "no contexts"
	}
	names := slices.Sorted(maps.Keys(file.Contexts))
	for i, name := range names {
		names[i] = strconv.Quote(name)
	}
	return strings.Join(names, ", ")
}
