package zkerr_test

import (
	"context"
	"errors"
	"fmt"
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

func TestStatusCode(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"no_error":             {nil, ""},
		"end_of_a_context":     {fmt.Errorf("%w: %w", zkerr.ErrNoNode, context.Canceled), ""},
		"named_code":           {fmt.Errorf("get: %w", zkerr.ErrNoNode), "-101"},
		"unnamed_code":         {fmt.Errorf("get: %w", zkerr.OfCode(-117)), "-117"},
		"code_of_no_ZooKeeper": {zkerr.Unnamed("7"), "_OTHER"},
		"no_answer":            {zkerr.ErrNotConnected, ""},
	} {
		if got := zkerr.StatusCode(tt.err); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
