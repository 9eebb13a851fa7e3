package zktest

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

// unavailable returns why tests get no server, as the environment variable
// ZK_TEST has it: "" if they do get one. Its error is a reason to fail.
func unavailable() (reason string, err error) {
	switch demand := os.Getenv("ZK_TEST"); demand {
	case "none":
		return "ZK_TEST=none", nil
	case "", "auto", "required":
		_, err := locate()
		if errors.Is(err, ErrMissing) && demand != "required" {
			return strings.TrimPrefix(err.Error(), "zktest: "), nil
		}
		return "", err
	default:
		return "", fmt.Errorf("zktest: ZK_TEST=%q: must be auto, required or none", demand)
	}
}

// require lets the test go on if it can have a server. Otherwise the test is
// skipped, and counted, or fails.
func require(t testing.TB) {
	t.Helper()
	reason, err := unavailable()
	if err != nil {
		t.Fatal(err)
	}
	if reason != "" {
		suite.countSkip(reason)
		t.Skipf("SKIPPED, NOT TESTED: %s", reason)
	}
}
