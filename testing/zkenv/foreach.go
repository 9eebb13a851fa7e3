package zkenv

import (
	"os"
	"testing"
	"testing/synctest"
)

// ForEach runs body in each environment, as subtests by the environments' names; the embedded ones run
// in a bubble of [testing/synctest]. They are parallel
// tests, so that ForEach may return before they have run, as t.Run does with those. Everything
// that the body needs from outside has to exist until t ends. ForEach fails the test if an option
// is faulty.
func ForEach(t *testing.T, body func(t *testing.T, w *Env), opts ...Option) {
	t.Helper()
	cfg, err := newConfig(opts)
	if err != nil {
		t.Fatal(err)
	}
	if cfg.elsewhere {
		t.Skipf("the test is for other environments than %s=%s", realVariable, os.Getenv(realVariable))
	}
	for _, l := range cfg.limits {
		t.Logf("only in %v: %s", l.kinds, l.reason)
	}
	for _, kind := range cfg.kinds {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			if kind.Virtual() {
				version := cfg.drawVersion(t)
				synctest.Test(t, func(t *testing.T) { body(t, &Env{kind, newEmbedded(t, kind, version), cfg}) })
				return
			}
			body(t, &Env{kind, newReal(t, kind, cfg.breakable), cfg})
		})
	}
}
