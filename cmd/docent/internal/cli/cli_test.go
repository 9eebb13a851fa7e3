package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"

	"github.com/docent-go/docent/cmd/docent/internal/apptest"
	"github.com/docent-go/docent/cmd/docent/internal/cli"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
)

// A run is what became of one run of docent.
type run struct {
	code     int
	out, err string
	settings cli.Settings // as the command "probe" saw them
}

// A probe is a command of the tests.
type probe func(ctx context.Context, app *cli.App) error

// docent runs docent with a command "probe".
func docent(t *testing.T, env []string, body probe, args ...string) run {
	t.Helper()
	var out, errOut bytes.Buffer
	app := &cli.App{In: strings.NewReader(""), Out: &out, Err: &errOut, Env: env}
	var r run
	r.code = app.Main(t.Context(), args, func(a *cli.App) *cobra.Command {
		return &cobra.Command{Use: "probe", Args: cli.Args(0, 1), RunE: func(cmd *cobra.Command, _ []string) error {
			r.settings = a.Settings()
			if body == nil {
				return nil
			}
			return body(cmd.Context(), a)
		}}
	})
	r.out, r.err = out.String(), errOut.String()
	return r
}

// write writes a file of the test and returns its path.
func write(t *testing.T, name, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chmod(path, mode)); err != nil { // whatever the umask is
		t.Fatal(err)
	}
	return path
}

const contexts = `{"current":"prod","contexts":{
	"prod":{"connect":"zk1:2281,zk2:2281/app","tls":true,"session_timeout":"8s","protected":true},
	"test":{"connect":"zktest:2181"}}}`

func TestSettings_come_from_flag_environment_file_default(t *testing.T) {
	t.Parallel()
	file := write(t, "config.json", contexts, 0o600)
	for name, c := range map[string]struct {
		env, args []string
		want      string
	}{
		"default":                        {nil, nil, ` "" false 30s`},
		"file":                           {nil, []string{"--config", file}, `prod "zk1:2281,zk2:2281/app" true 8s`},
		"file by the environment":        {[]string{"DOCENT_CONFIG=" + file}, nil, `prod "zk1:2281,zk2:2281/app" true 8s`},
		"other context":                  {[]string{"DOCENT_CONTEXT=test"}, []string{"--config", file}, `test "zktest:2181" false 30s`},
		"environment before file":        {[]string{"DOCENT_CONNECT=env:1"}, []string{"--config", file}, `prod "env:1" true 8s`},
		"flag before environment":        {[]string{"DOCENT_CONNECT=env:1"}, []string{"--connect", "flag:1"}, ` "flag:1" false 30s`},
		"flag before file":               {nil, []string{"--config", file, "--session-timeout=4s", "--tls=false"}, `prod "zk1:2281,zk2:2281/app" false 4s`},
		"the last value of a variable":   {[]string{"DOCENT_CONNECT=a", "DOCENT_CONNECT=b"}, nil, ` "b" false 30s`},
		"flags of the same name as args": {nil, []string{"--connect", "probe"}, ` "probe" false 30s`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := docent(t, c.env, nil, append(c.args, "probe")...)
			got := fmt.Sprintf("%s %q %v %v", r.settings.Context, r.settings.Connect, r.settings.TLS, r.settings.SessionTimeout)
			if r.code != 0 || got != c.want {
				t.Errorf("exit code %d, settings %s; want %s\n%s", r.code, got, c.want, r.err)
			}
			if (r.settings.Context == "prod") != r.settings.Protected {
				t.Errorf("context %q is protected: %v", r.settings.Context, r.settings.Protected)
			}
		})
	}
}

func TestWrong_settings_are_usage_errors(t *testing.T) {
	t.Parallel()
	file := func(text string) []string { return []string{"--config", write(t, "c.json", text, 0o600)} }
	open, absent := write(t, "auth", "digest:u:sesame", 0o644), filepath.Join(t.TempDir(), "absent")
	broken := write(t, "auth", "digest:u:fine\nsesame", 0o600)
	for name, c := range map[string]struct {
		env, args []string
		want      string
	}{
		"unknown flag":             {nil, []string{"--nope"}, "unknown flag: --nope"},
		"unknown format":           {nil, []string{"-o", "yaml"}, "must be text, wide, json, jsonl or name"},
		"variable":                 {[]string{"DOCENT_TIMEOUT=soon"}, nil, "DOCENT_TIMEOUT: "},
		"negative time":            {nil, []string{"--timeout=-1s"}, "--timeout -1s: must be positive"},
		"no file":                  {nil, []string{"--config", absent}, "read contexts: open " + absent},
		"unknown key":              {nil, file(`{"currently":"prod"}`), `unknown field "currently"`},
		"unknown key of context":   {nil, file(`{"contexts":{"a":{"conect":"x"}}}`), `context "a": conect: unknown key`},
		"credential in the file":   {nil, file(`{"contexts":{"a":{"auth":"digest:u:p"}}}`), `context "a": auth: unknown key`},
		"number for text":          {nil, file(`{"contexts":{"a":{"connect":1}}}`), `context "a": connect: must be a string`},
		"text for bool":            {nil, file(`{"contexts":{"a":{"tls":"yes"}}}`), `context "a": tls: must be true or false`},
		"duration of context":      {nil, file(`{"current":"a","contexts":{"a":{"timeout":"soon"}}}`), `context "a": timeout: `},
		"unknown context":          {nil, append(file(contexts), "--context", "dev"), `context "dev": the file has "prod", "test"`},
		"no contexts":              {nil, []string{"--context", "dev"}, `context "dev": the file has no contexts`},
		"certificate alone":        {nil, []string{"--cert", "x"}, "--cert and --key: one needs the other"},
		"no ensemble":              {nil, nil, "no ensemble: set --connect"},
		"bad ensemble":             {nil, []string{"--connect", "a:b:c"}, "a:b:c"},
		"bad option":               {nil, []string{"--connect", "a", "--session-timeout", "1ms"}, "session timeout 1ms"},
		"auth file that is open":   {nil, []string{"--connect", "a", "--auth-file", open}, "others may read it (mode 0644)"},
		"auth file with a fault":   {nil, []string{"--connect", "a", "--auth-file", broken}, "line 2: must be scheme:credential"},
		"auth file without any":    {nil, []string{"--connect", "a", "--auth-file", write(t, "auth", "", 0o600)}, "has no credential"},
		"auth file of comments":    {nil, []string{"--connect", "a", "--auth-file", write(t, "auth", "# none\n\n  \n", 0o600)}, "has no credential"},
		"auth file of a mark":      {nil, []string{"--connect", "a", "--auth-file", write(t, "auth", "\ufeff", 0o600)}, "has no credential"},
		"no auth file":             {nil, []string{"--connect", "a", "--auth-file", "/dev/null"}, "auth file /dev/null: "},
		"auth file that is absent": {nil, []string{"--connect", "a", "--auth-file", absent}, "auth file " + absent + ": "},
		"auth file in UTF-16":      {nil, []string{"--connect", "a", "--auth-file", write(t, "auth", "\xff\xfed\x00i\x00", 0o600)}, "is no text in UTF-8"},
		"auth file that is large":  {nil, []string{"--connect", "a", "--auth-file", write(t, "auth", strings.Repeat("\n", 2<<20), 0o600)}, "has more than 1048576 bytes"},
		"auth file of half":        {nil, []string{"--connect", "a", "--auth-file", write(t, "auth", "digest:sesame", 0o600)}, "line 1: must be digest:user:password"},
		"auth file for SASL":       {nil, []string{"--connect", "a", "--auth-file", write(t, "auth", "sasl:sesame", 0o600)}, "no SASL and no Kerberos"},
		"auth file of the context": {nil, file(`{"current":"a","contexts":{"a":{"connect":"a","auth_file":"` + write(t, "auth", "", 0o600) + `"}}}`), "has no credential"},
		"auth variable of a blank": {[]string{"DOCENT_AUTH=\n"}, []string{"--connect", "a"}, "DOCENT_AUTH: has no credential"},
		"time without a unit":      {nil, []string{"--timeout", "ten"}, "must be a time such as 10, 1m30s or 500ms"},
		"time that is too long":    {nil, []string{"--timeout", "1e300"}, "must be a time such as 10, 1m30s or 500ms"},
		"time that is no number":   {nil, []string{"--timeout", "NaN"}, "must be a time such as 10, 1m30s or 500ms"},
		"auth variable of a word":  {[]string{"DOCENT_AUTH=sesame"}, []string{"--connect", "a"}, "DOCENT_AUTH: line 1: must be scheme:credential"},
		"no certificate":           {nil, []string{"--connect", "a", "--ca", broken}, "has no certificate in PEM form"},
		"too many arguments":       {nil, []string{"a", "b"}, "docent probe takes one argument at most, and got 2: docent probe"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := docent(t, c.env, func(_ context.Context, a *cli.App) error {
				_, err := a.Client()
				return err
			}, append([]string{"probe"}, c.args...)...)
			if r.code != cli.CodeUsage || !strings.Contains(r.err, c.want) || !strings.Contains(r.err, "docent probe --help") {
				t.Errorf("exit code %d, want %d; no %q in:\n%s", r.code, cli.CodeUsage, c.want, r.err)
			}
			if strings.Contains(r.err, "sesame") {
				t.Errorf("the error shows a credential:\n%s", r.err)
			}
		})
	}
}

// A time is what Go takes, or a number of seconds, as flock and timeout take it.
func TestTimes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"10": 10 * time.Second, "0.5": 500 * time.Millisecond, "1.5s": 1500 * time.Millisecond, "2m": 2 * time.Minute, "1d": 24 * time.Hour, "1m30s": 90 * time.Second,
	} {
		r := docent(t, []string{"DOCENT_SESSION_TIMEOUT=" + text}, func(context.Context, *cli.App) error { return nil }, "probe", "--timeout", text)
		if r.code != 0 || r.settings.Timeout != want || r.settings.SessionTimeout != want {
			t.Errorf("%s: exit code %d, %+v\n%s", text, r.code, r.settings, r.err)
		}
	}
}

// The file of credentials may be a pipe, which gives them once, and may begin with a byte order mark.
func TestCredentials_are_read_once(t *testing.T) {
	t.Parallel()
	read, write := must.Get2(os.Pipe())(t)
	must.Get(write.WriteString("\ufeffdigest:u:p\r\n"))(t)
	write.Close()
	defer read.Close()
	r := docent(t, nil, func(_ context.Context, a *cli.App) error {
		for range 2 {
			if given, err := a.HasCredentials(); err != nil || !given {
				t.Errorf("credentials %v: %v", given, err)
			}
		}
		c, err := a.Client()
		if err != nil {
			return err
		}
		return c.Close()
	}, "probe", "--connect", "a", "--auth-file", fmt.Sprintf("/dev/fd/%d", read.Fd()))
	if r.code != 0 {
		t.Errorf("exit code %d: %s", r.code, r.err)
	}
}

// The default file of another user's home, say, can't be read. docent says so and does without.
func TestDefaultFile_that_can_not_be_read(t *testing.T) {
	t.Parallel()
	noDirectory := write(t, "home", "", 0o600)
	r := docent(t, []string{"HOME=" + noDirectory}, func(context.Context, *cli.App) error { return nil })
	if r.code != 0 || !strings.Contains(r.err, "contexts are left out: open "+noDirectory) {
		t.Errorf("exit code %d: %s", r.code, r.err)
	}
}

func TestExit_codes(t *testing.T) {
	t.Parallel()
	failure := &framework.OpError{Op: "get", Path: "/pay", Err: framework.ErrNoAuth}
	for name, c := range map[string]struct {
		err  error
		args []string
		code int
		want string // on standard error
	}{
		"done":             {nil, nil, 0, ""},
		"failed":           {failure, nil, 1, "docent: " + failure.Error() + "\n"},
		"own code":         {&cli.ExitError{Code: 3}, nil, 3, ""},
		"own code, joined": {errors.Join(errors.Join(&cli.ExitError{Code: 3}, nil), nil), nil, 3, ""},
		"more than a code": {
			errors.Join(&cli.ExitError{Code: 3}, errors.New("no space left")), nil, 3, `docent: exit code 3\nno space left` + "\n",
		},
		"own message": {&cli.ExitError{Code: 4, Err: errors.New("2 findings")}, nil, 4, "docent: 2 findings\n"},
		"JSON": {
			failure,
			[]string{"-o", "json"},
			1,
			`{"schema":"docent/v1","error":{"type":"no_auth","message":"` + failure.Error() + `","path":"/pay"}}` + "\n",
		},
		"hostile": {errors.New("a\x1b[2J\r\u202eb"), nil, 1, `docent: a\u001b[2J\r\u202eb` + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := docent(t, nil, func(context.Context, *cli.App) error { return c.err }, append(c.args, "probe")...)
			if r.code != c.code || r.err != c.want {
				t.Errorf("exit code %d, want %d; standard error %q, want %q", r.code, c.code, r.err, c.want)
			}
		})
	}
	t.Run("usage in JSON", func(t *testing.T) {
		t.Parallel()
		r := docent(t, nil, nil, "-o", "json", "nope")
		var document cli.ErrorDocument
		if err := json.Unmarshal([]byte(r.err), &document); err != nil || document.Error.Type != "usage" || r.code != 2 {
			t.Errorf("exit code %d, error %+v (%v)", r.code, document, err)
		}
	})
}

func TestConnect(t *testing.T) {
	t.Parallel()
	srv := zkserver.Run(t, zkenv.DrawVersion(t)...)
	addr := must.Get(srv.Listen("127.0.0.1:0"))(t)
	connect := func(ctx context.Context, a *cli.App) error {
		c, err := a.Connect(ctx)
		if err != nil {
			return err
		}
		return c.Close()
	}
	if r := docent(t, nil, connect, "probe", "--connect", addr); r.code != 0 {
		t.Errorf("exit code %d: %s", r.code, r.err)
	}
	begin := time.Now()
	r := docent(t, nil, connect, "probe", "--connect", "127.0.0.1:1", "--timeout", "1s")
	if r.code != cli.CodeFailed || !strings.Contains(r.err, "refused") || time.Since(begin) > 10*time.Second {
		t.Errorf("exit code %d after %v: %s", r.code, time.Since(begin), r.err)
	}
}

func TestSafe(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"/locks/größe 锁":         "/locks/größe 锁",
		"a\x1b]0;x\x07b":         `a\u001b]0;x\u0007b`,
		"a\r\nb\tc":              `a\r\nb\tc`,
		"\u202eabc\u2066":        `\u202eabc\u2066`,
		"\u2028":                 `\u2028`,
		"\xff\xfeok":             `\xff\xfeok`,
		"\ufffd":                 "\ufffd",
		"\u0085\u009b1m":         `\u0085\u009b1m`,
		"zero\u200bwidth":        `zero\u200bwidth`,
		"tag \U000e0041":         `tag \U000e0041`,
		strings.Repeat("é", 600): strings.Repeat("é", 512) + "…",
	} {
		if got := cli.Safe(text); got != want {
			t.Errorf("Safe(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestVersion_and_topics(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"version"}, "docent ("},
		{[]string{"version", "-o", "json"}, `"schema": "docent/v1"`},
		{[]string{"help", "exit-codes"}, "121       the lock was lost"},
		{[]string{"help", "loss"}, "D - G - r"},
		{[]string{"help", "json"}, "docent/v1"},
		{[]string{"completion", "bash"}, "__start_docent"},
		{nil, "Additional Commands:"},
	} {
		if r := docent(t, nil, nil, c.args...); r.code != 0 || !strings.Contains(r.out, c.want) {
			t.Errorf("docent %s: exit code %d, no %q in\n%s%s", c.args, r.code, c.want, r.out, r.err)
		}
	}
}

// A server may not know yet of an outer hold that was granted at another one: a session that is local to the server
// begins without it.
func TestOuterHold_at_a_server_that_is_behind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := zkserver.Run(t, append(zkenv.DrawVersion(t), zkserver.WithFrontends(3))...)
		outer := apptest.Client(t, server.Addr(), framework.WithDialer(server.Dial))
		behind := server.Frontend(1)
		c := apptest.Client(t, behind.Addr(), framework.WithDialer(server.Dial))
		behind.LagBy(time.Second)
		node := must.Get(outer.Create(t.Context(), "/locks/a/lock-", nil, framework.Ephemeral(), framework.Sequential(), framework.WithParents()))(t)
		stat, _, err := outer.Exists(t.Context(), node)
		if err != nil {
			t.Fatal(err)
		}
		hold := cli.Held{Path: "/locks/a", Node: node, Fence: stat.Czxid, Session: stat.EphemeralOwner}
		app := &cli.App{Env: []string{cli.HeldVariable + "=" + hold.String()}}
		if held, err := app.OuterHold(t.Context(), c, "/locks/a", false); err != nil || !held {
			t.Errorf("%v, %v: docent would wait for itself", held, err)
		}
	})
}
