package framework_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/testing/zktest"
)

// ValidatePath refuses the same paths as Java's PathUtils, which works in UTF-16.
func TestValidatePath(t *testing.T) {
	for _, path := range []string{"/", "/a/b", "/é", "/日本", "/\u00a0", "/\ud7ff", "/\uf900", "/\uffef", "/a.b", "/...", "/.a"} {
		if err := framework.ValidatePath(path); err != nil {
			t.Errorf("%q: %v", path, err)
		}
	}
	for _, path := range []string{
		"", "a", "/a/", "//", "/.", "/..", "/a/../b", "/\x00", "/\x1f", "/\x7f", "/\u0080", "/\u009f", "/\ue000", "/\uefff", "/\uf000",
		"/\uf8ff", "/\ufff0", "/\uffff", "/😀", "/\U00010000", "/\U0010ffff", "/a😀b/c", "/\xff", "/\xed\xa0\x80",
	} {
		if err := framework.ValidatePath(path); !errors.Is(err, framework.ErrInvalidPath) {
			t.Errorf("%q: %v", path, err)
		}
	}
}

// A server is of the same opinion, by what it answers to a path that was not checked.
func TestValidatePathAgreesWithAServer(t *testing.T) {
	t.Parallel()
	c := connect(t, zktest.Shared(t).Addr()+fresh(t))
	mustCreate(t, c, "/x", "")
	for _, name := range []string{"é", "日本", "\ud7ff", "\uf900", "\uffef", "\ue000", "\uefff", "\uf8ff", "\ufff0", "😀", "\U0010ffff"} {
		err := framework.CreateUnchecked(c, "/"+name)
		if valid := framework.ValidatePath("/"+name) == nil; valid != (err == nil) {
			t.Errorf("%q: valid %v, the server says %v", name, valid, err)
		}
	}
}

func TestErrorsShortenPathsAtRunes(t *testing.T) {
	for _, path := range []string{"/" + strings.Repeat("日本", 100), "/a" + strings.Repeat("日本", 100), "/ab" + strings.Repeat("é", 200), "/" + strings.Repeat("x", 300)} {
		for what, err := range map[string]error{
			"OpError":  &framework.OpError{Op: "get", Path: path, Err: framework.ErrNoNode},
			"TxnError": &framework.TxnError{Op: "set", Path: path, Err: framework.ErrNoNode},
		} {
			if text := err.Error(); !utf8.ValidString(text) || len(text) > 350 || !strings.Contains(text, path[:250]) {
				t.Errorf("%s: %q", what, text)
			}
		}
	}
}
