package partition

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"slices"
	"sync/atomic"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/errtype"
	"github.com/docent-go/docent/internal/queuenode"
	"github.com/docent-go/docent/internal/usercall"
	"github.com/docent-go/docent/internal/zkpath"
	"github.com/docent-go/docent/recipes/internal/args"
	"github.com/docent-go/docent/recipes/internal/contender"
	"github.com/docent-go/docent/recipes/internal/telemetry"
	"github.com/docent-go/docent/recipes/internal/waitqueue"
)

// recipe begins the text of errors.
const recipe = args.Recipe("partition")

// ErrMoved is the cause of a served context's end when the key is to be served by another member.
var ErrMoved = errtype.New("the key moves to another member", "moved")

// kind is that of the contenders of a key.
const kind = "lock-"

// A Partition is keys that are divided among members. Its methods may be called concurrently.
type Partition struct {
	client  *framework.Client
	path    string
	keys    []string
	cfg     config
	running atomic.Bool
}

// New returns the partition of the keys at path; nothing is sent yet. All members should be given the
// same keys, in any order, 1 to 10,000 of them. A key must not be empty or contain a slash, and must
// be given once. If arguments are faulty, New returns all faults.
func New(c *framework.Client, path string, keys []string, opts ...Option) (*Partition, error) {
	cfg, err := newConfig(c, path, keys, opts)
	if err != nil {
		return nil, recipe.Error(c, "new", path, err)
	}
	if cfg.id == "" {
		host, _ := os.Hostname() // a host without a name is shown without one
		cfg.id = fmt.Sprintf("%s-%d-%s", host, os.Getpid(), rand.Text()[:8])
	}
	return &Partition{client: c, path: path, keys: slices.Clone(keys), cfg: cfg}, nil
}

// ID returns the id of this process as a member: see [WithID].
func (p *Partition) ID() string { return p.cfg.id }

// Owners returns the id of the member that serves each key, as far as the client's server knows. Keys that
// no member serves are not in it. It costs two requests per key. If ctx ends first, the error
// wraps ctx's.
func (p *Partition) Owners(ctx context.Context) (map[string]string, error) {
	usercall.Require("the Partition's client", p.client != nil)
	owners, err := p.owners(ctx)
	return owners, recipe.CallError(ctx, p.client, "owners of", p.path, err)
}

func (p *Partition) owners(ctx context.Context) (map[string]string, error) {
	queues := make([]*waitqueue.Queue, len(p.keys))
	for i, key := range p.keys {
		queues[i] = p.queue(key)
	}
	firsts, err := contender.FirstOfEach(ctx, queues)
	owners := make(map[string]string)
	for i, key := range p.keys {
		if firsts[i].Holder && firsts[i].Metadata != nil { // else another program's
			owners[key] = firsts[i].Metadata.Owner
		}
	}
	return owners, err
}

// queue returns the queue of those that serve the key.
func (p *Partition) queue(key string) *waitqueue.Queue {
	return &waitqueue.Queue{
		Client: p.client, Dir: zkpath.Join(zkpath.Join(p.path, "keys"), key), Kinds: []string{kind},
		ACL: p.cfg.ACL, Predecessor: queuenode.ExclusivePredecessor,
	}
}

// contest returns what acquires the leases of the key.
func (p *Partition) contest(key string) *contender.Contest {
	q := p.queue(key)
	return &contender.Contest{
		Queue: q, Path: q.Dir, LossPolicy: p.cfg.LossPolicy, Recipe: recipe,
		Telemetry: telemetry.Of(p.client, telemetry.TypePartition, p.cfg.Name, p.client.AbsolutePath(q.Dir)),
		Data: func(_, party string, acq *telemetry.Acquire) []byte {
			return contender.Metadata(p.cfg.id, party, nil, acq).Encode()
		},
	}
}
