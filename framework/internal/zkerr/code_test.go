package zkerr_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/docent-go/docent/framework/internal/zkerr"
	"github.com/docent-go/docent/internal/proto"
)

func TestOfCode(t *testing.T) {
	t.Parallel()
	for code, want := range map[proto.Code]error{
		proto.CodeOK:             nil,
		proto.CodeNoNode:         zkerr.ErrNoNode,
		proto.CodeUnimplemented:  zkerr.ErrUnsupported,
		proto.CodeThrottled:      zkerr.ErrNotConnected,
		proto.CodeSessionExpired: zkerr.ErrUnknownOutcome,
		proto.CodeSessionMoved:   zkerr.ErrNotConnected,
		proto.CodeNotReadOnly:    zkerr.ErrReadOnly,
		proto.CodeAuthRequired:   zkerr.ErrAuthFailed,
		-117:                     zkerr.ErrServer,
	} {
		if got := zkerr.OfCode(code); !errors.Is(got, want) {
			t.Errorf("code %d is %v, want %v", code, got, want)
		}
	}
}

// A metric's attributes have few values whatever a server sends.
func TestStatusCode(t *testing.T) {
	t.Parallel()
	want := func(err error, want string) {
		t.Helper()
		if got := zkerr.StatusCode(err); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
	want(fmt.Errorf("%w: %w", zkerr.ErrNoNode, context.Canceled), "")
	want(fmt.Errorf("get: %w", zkerr.ErrNoNode), "-101")
	want(fmt.Errorf("get: %w", zkerr.OfCode(-117)), "-117")
	want(zkerr.ErrNotConnected, "")
	for code, text := range map[proto.Code]string{
		-1: "-1", -13: "-13", -127: "-127", -112: "-112", 0: "", 1: "_OTHER", 7: "_OTHER", math.MinInt32: "_OTHER", -99: "_OTHER", -500: "_OTHER",
	} {
		want(zkerr.OfCode(code), text)
	}
}

// A user who sees an error sees what it means, and not a number. A program can tell each code from all others.
func TestEachCodeHasANameAndIsKnown(t *testing.T) {
	t.Parallel()
	codes := []proto.Code{
		-1, -2, -3, -4, -5, -6, -7, -8, -12, -13, -14,
		-100, -101, -102, -103, -108, -110, -111, -112, -113, -114, -115, -118, -119, -120, -121, -122, -123, -124, -125, -127,
	}
	texts := make(map[string]proto.Code)
	for _, code := range codes {
		err := zkerr.OfCode(code)
		if other, ok := texts[err.Error()]; ok {
			t.Errorf("codes %d and %d have the same text: %v", code, other, err)
		}
		texts[err.Error()] = code
		if errors.Is(err, zkerr.ErrServer) && strings.ContainsAny(err.Error(), "0123456789") {
			t.Errorf("code %d has no name: %v", code, err)
		}
		if got := zkerr.CodeOf(fmt.Errorf("get: %w", err)); got != code {
			t.Errorf("the code of %v is %d, want %d", err, got, code)
		}
	}
	if err := zkerr.OfCode(-126); zkerr.CodeOf(err) != -126 || err.Error() != "server error: code -126" {
		t.Errorf("an unknown code: %v", err)
	}
}
