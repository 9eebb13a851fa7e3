package zkerr_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/docent-go/docent/framework/internal/zkerr"
	"github.com/docent-go/docent/internal/check"
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
		proto.CodeNotReadOnly:    zkerr.ErrReadOnly,
		proto.CodeAuthRequired:   zkerr.ErrAuthFailed,
		-117:                     zkerr.ErrServer,
	} {
		check.Is(t, zkerr.OfCode(code), want, "code %d is", code)
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
		check.Equal(t, zkerr.StatusCode(tt.err), tt.want, "%s", name)
	}
}
