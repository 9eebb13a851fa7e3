package permits

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/errtype"
	"github.com/docent-go/docent/internal/pace"
)

// ErrCorrupt is returned if the znode that has the number of permits has no number.
var ErrCorrupt = errtype.New("the znode's data is not a number of 4 bytes", "corrupt")

// A Number is how many permits there are: Fixed, or the number in the znode at the path At.
type Number struct {
	Fixed int    // without At; with it, the number with which the znode is created if it is missing
	At    string // holds 4 bytes, big endian, as Curator's SharedCount; "" for none
}

// watch returns the number, and a watch on it; nil if the number never changes.
func (n Number) watch(
	ctx context.Context, c *framework.Client, acl []acl.Entry,
) (int, *framework.Watch, error) {
	if n.At == "" {
		return n.Fixed, nil, nil
	}
	for rounds := pace.Rounds(); ; {
		if err := rounds.Wait(ctx, 1); err != nil {
			return 0, nil, err
		}
		w, err := c.Watch(ctx, n.At, framework.WatchData)
		switch {
		case err == nil:
			number, err := decode(w.Data())
			if err != nil {
				w.Close()
				return 0, nil, fmt.Errorf("permits at %s: %w", n.At, err)
			}
			return number, w, nil
		case !errors.Is(err, framework.ErrNoNode):
			return 0, nil, err
		}
		opts := []framework.CreateOption{framework.WithParents()}
		if acl != nil {
			opts = append(opts, framework.WithACL(acl...))
		}
		initial := binary.BigEndian.AppendUint32(nil, uint32(n.Fixed))
		_, err = c.Create(ctx, n.At, initial, opts...)
		unsure := errors.Is(err, framework.ErrNodeExists) || errors.Is(err, framework.ErrUnknownOutcome)
		if err != nil && (!unsure || ctx.Err() != nil) { // if it is unsure, the next read tells
			return 0, nil, err
		}
	}
}

func decode(data []byte) (int, error) {
	if len(data) != 4 {
		return 0, ErrCorrupt
	}
	return int(int32(binary.BigEndian.Uint32(data))), nil
}
