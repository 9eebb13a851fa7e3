// Bank-transfer moves money between accounts that several processes share. A
// transfer locks both of its accounts with one lock.Multi: all or none, and without
// deadlock, though some go from anna to bert while others go from bert to anna.
//
//	go run ./examples/bank-transfer                          on a server within the program
//	go run ./examples/bank-transfer -connect localhost:2181  on yours
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"sync"

	"github.com/docent-go/docent/examples/harness"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
)

var errTooLittle = errors.New("not enough money")

// A bank keeps its accounts in znodes, and a lock for each.
type bank struct{ client *framework.Client }

func (b *bank) transfer(ctx context.Context, from, to string, amount int) error {
	both, err := b.lockOf(from, to)
	if err != nil {
		return err
	}
	return lock.Do(ctx, both, func(ctx context.Context, lease *lock.Lease) error {
		return b.move(ctx, lease, from, to, amount)
	})
}

// move is the transfer itself. lease is of both locks; ctx ends when one of the two is lost.
func (b *bank) move(ctx context.Context, lease *lock.Lease, from, to string, amount int) error {
	source, err := b.balance(ctx, from)
	if err != nil {
		return err
	}
	if source < amount {
		return fmt.Errorf("%s has %d: %w", from, source, errTooLittle)
	}
	target, err := b.balance(ctx, to)
	if err != nil {
		return err
	}
	// The guards refuse the transaction to a process that was stopped after it read the
	// balances: by the time it goes on, others may have had the accounts.
	_, err = b.client.Txn(ctx, append(lease.Guards(),
		framework.OpSet(account(from), money(source-amount), framework.AnyVersion),
		framework.OpSet(account(to), money(target+amount), framework.AnyVersion))...)
	return err
}

func (b *bank) lockOf(names ...string) (*lock.Multi, error) {
	var locks []lock.Locker
	for _, name := range names {
		mutex, err := lock.NewMutex(b.client, "/examples/bank/locks/"+name)
		if err != nil {
			return nil, err
		}
		locks = append(locks, mutex)
	}
	return lock.NewMulti(locks...)
}

func (b *bank) balance(ctx context.Context, name string) (int, error) {
	data, _, err := b.client.Get(ctx, account(name))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(data))
}

func account(name string) string { return "/examples/bank/accounts/" + name }

func money(amount int) []byte { return []byte(strconv.Itoa(amount)) }

func run(ctx context.Context, zk harness.ZooKeeper, out io.Writer) (err error) {
	client, err := framework.NewClient(zk.Connect, zk.Dialer)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	names := []string{"anna", "bert", "carla"}
	for _, name := range names {
		if _, err := client.CreateOrSet(ctx, account(name), money(100), framework.WithParents()); err != nil {
			return err
		}
	}

	errs := make([]error, 4)
	var tellers sync.WaitGroup
	for i := range errs { // each as in a process of its own
		tellers.Go(func() { errs[i] = teller(ctx, zk, i, names) })
	}
	tellers.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}

	total := 0
	for _, name := range names {
		balance, err := (&bank{client}).balance(ctx, name)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%-6s %4d\n", name, balance)
		total += balance
	}
	if total != 300 {
		return fmt.Errorf("total %d, want 300: money came from nowhere or was lost", total)
	}
	fmt.Fprintf(out, "total  %4d, as before\n", total)
	return nil
}

// teller makes twenty transfers between accounts that it picks at random.
func teller(ctx context.Context, zk harness.ZooKeeper, id int, names []string) (err error) {
	client, err := framework.NewClient(zk.Connect, zk.Dialer)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	random := rand.New(rand.NewPCG(1, uint64(id)))
	for range 20 {
		two := random.Perm(len(names))[:2]
		err := (&bank{client}).transfer(ctx, names[two[0]], names[two[1]], random.IntN(80))
		if err != nil && !errors.Is(err, errTooLittle) {
			return fmt.Errorf("teller %d: %w", id, err)
		}
	}
	return nil
}

func main() { harness.Main(run) }
