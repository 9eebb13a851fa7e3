package kerberos_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/kerberos"
)

// patience is what a test waits for something that has to come.
const patience = 20 * time.Second

// mechanism returns one that asks the KDCs at addrs.
func mechanism(t *testing.T, addrs string, c kerberos.Credential, opts ...kerberos.Option) *kerberos.Mechanism {
	t.Helper()
	return must.Get(kerberos.New(c, append([]kerberos.Option{kerberos.WithConfigFile(config(t, addrs))}, opts...)...))(t)
}

// byName returns the address with a name that the realm knows.
func byName(t *testing.T, addr string) string {
	t.Helper()
	_, port := must.Get2(net.SplitHostPort(addr))(t)
	return net.JoinHostPort("localhost", port)
}

func newClient(t *testing.T, addr string, opts ...framework.Option) *framework.Client {
	t.Helper()
	c := must.Get(framework.NewClient(addr, opts...))(t)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error("close:", err)
		}
	})
	return c
}

// connect returns a client that is connected.
func connect(t *testing.T, addr string, m framework.Mechanism, opts ...framework.Option) *framework.Client {
	t.Helper()
	c := newClient(t, addr, append(opts, framework.WithSASL(m))...)
	must.OK(t, c.AwaitConnected(within(t, patience)))
	return c
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// start begins an exchange and returns the error.
func start(t *testing.T, m *kerberos.Mechanism) error {
	t.Helper()
	_, err := m.Start(within(t, patience), "localhost")
	return err
}

func wantErr(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

// wantFailure checks that err is a failed attempt and no refusal.
func wantFailure(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || errors.Is(err, framework.ErrAuthFailed) || !strings.Contains(err.Error(), text) {
		t.Errorf("%v, want a failure with %q that is no refusal", err, text)
	}
}

// kinit writes a credential cache with a ticket of app and returns its path.
func kinit(t *testing.T, r *realm, lifetime string) string {
	t.Helper()
	path := t.TempDir() + "/cache"
	must.OK(t, r.run("", "kinit", "-k", "-t", r.keytab("app"), "-l", lifetime, "-c", path, "app"))
	return path
}

// secrets returns the keys in a keytab, as their bytes and in hexadecimal.
func secrets(t *testing.T, file string) []string {
	t.Helper()
	out := must.Get(exec.Command("klist", "-k", "-K", file).Output())(t)
	var keys []string
	for field := range strings.FieldsSeq(string(out)) {
		if text, ok := strings.CutPrefix(field, "(0x"); ok {
			keys = append(keys, strings.TrimSuffix(text, ")"))
		}
	}
	if len(keys) == 0 {
		t.Fatalf("no key in %s", file)
	}
	return keys
}

// A record keeps all that is logged, and all that a test gives it.
type record struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write is part of zapcore.WriteSyncer.
func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.buf.Write(p)
}

// Sync is part of zapcore.WriteSyncer.
func (r *record) Sync() error { return nil }

func (r *record) logger() *zap.Logger {
	return zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewDevelopmentEncoderConfig()), r, zap.DebugLevel))
}

// add keeps every form in which a value might be printed.
func (r *record) add(values ...any) {
	for _, v := range values {
		fmt.Fprintf(r, "%v %+v %#v %x\n", v, v, v, v)
	}
}

// check fails the test if a secret is in the record.
func (r *record) check(t *testing.T, secrets ...string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	text := r.buf.String()
	for _, secret := range secrets {
		if strings.Contains(text, secret) || strings.Contains(strings.ToLower(text), fmt.Sprintf("%x", secret)) {
			t.Errorf("the secret %q shows", secret)
		}
	}
	if text == "" {
		t.Error("the record is empty: nothing was checked")
	}
}

func writeFile(t *testing.T, path string, text []byte) {
	t.Helper()
	must.OK(t, os.WriteFile(path, text, 0o600))
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	return must.Get(os.ReadFile(path))(t)
}
