package history

import (
	"fmt"
	"time"

	"github.com/anishathalye/porcupine"
)

// A NumberCall is a call of a number that clients share: a counter, or a register with a number.
type NumberCall struct {
	Client int
	Op     NumberOp
	Arg    int64 // what is added, set or compared with
	To     int64 // what CompareAndSet sets
	Result int64 // the number that Get and Add returned

	Swapped bool // the result of CompareAndSet
	Unknown bool // the outcome is not known: the call had its effect at any time from Call on, or never

	Call, Return int64
}

// A NumberOp is what a call does.
type NumberOp string

// The operations of a number.
const (
	NumberGet           NumberOp = "get"
	NumberAdd           NumberOp = "add"
	NumberSet           NumberOp = "set"
	NumberCompareAndSet NumberOp = "compare and set"
)

// CheckNumber asks porcupine for an order of all calls in which a number that begins with 0 returns
// these results. It asks for no longer than limit. An addition that is applied twice, or
// not at all although it succeeded, has no such order.
func CheckNumber(calls []NumberCall, limit time.Duration) porcupine.CheckResult {
	ops := make([]porcupine.Operation, len(calls))
	for i, c := range calls {
		ret := c.Return
		if c.Unknown {
			ret = Forever
		}
		ops[i] = porcupine.Operation{ClientId: c.Client, Input: c, Call: c.Call, Return: ret}
	}
	model := porcupine.NondeterministicModel{
		Init:  func() []any { return []any{int64(0)} },
		Step:  func(at, input, _ any) []any { return input.(NumberCall).step(at.(int64)) },
		Equal: func(a, b any) bool { return a == b },
		DescribeOperation: func(input, _ any) string {
			c := input.(NumberCall)
			return fmt.Sprintf("%s %d %d -> %d %v unknown=%v", c.Op, c.Arg, c.To, c.Result, c.Swapped, c.Unknown)
		},
	}
	return porcupine.CheckOperationsTimeout(model.ToModel(), ops, limit)
}

// step returns the numbers that are possible after the call.
func (c NumberCall) step(at int64) []any {
	after, possible := at, true
	switch c.Op {
	case NumberGet:
		possible = c.Unknown || at == c.Result
	case NumberAdd:
		after = at + c.Arg
		possible = c.Unknown || after == c.Result
	case NumberSet:
		after = c.Arg
	case NumberCompareAndSet:
		if at == c.Arg {
			after = c.To
		}
		possible = c.Unknown || c.Swapped == (at == c.Arg)
	}
	switch {
	case !possible:
		return nil
	case c.Unknown && after != at:
		return []any{at, after}
	}
	return []any{after}
}
