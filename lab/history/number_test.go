package history_test

import (
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/docent-go/docent/lab/history"
)

func TestCheckNumber(t *testing.T) {
	t.Parallel()
	add := func(arg, result, from, to int64) history.NumberCall {
		return history.NumberCall{Op: history.NumberAdd, Arg: arg, Result: result, Call: from, Return: to}
	}
	get := func(result, from, to int64) history.NumberCall {
		return history.NumberCall{Op: history.NumberGet, Result: result, Call: from, Return: to}
	}
	unknown := func(c history.NumberCall) history.NumberCall {
		c.Unknown = true
		return c
	}
	swap := func(old, to int64, swapped bool, from, until int64) history.NumberCall {
		return history.NumberCall{Op: history.NumberCompareAndSet, Arg: old, To: to, Swapped: swapped, Call: from, Return: until}
	}
	set := history.NumberCall{Op: history.NumberSet, Arg: 7, Call: 10, Return: 11}
	for name, tc := range map[string]struct {
		calls []history.NumberCall
		want  porcupine.CheckResult
	}{
		"additions one after another":              {[]history.NumberCall{add(1, 1, 0, 1), add(2, 3, 2, 3)}, porcupine.Ok},
		"additions side by side":                   {[]history.NumberCall{add(1, 3, 0, 5), add(2, 2, 0, 5)}, porcupine.Ok},
		"an addition that is applied twice":        {[]history.NumberCall{add(1, 1, 0, 1), get(2, 2, 3)}, porcupine.Illegal},
		"an addition that is lost":                 {[]history.NumberCall{add(1, 1, 0, 1), get(0, 2, 3)}, porcupine.Illegal},
		"two additions with one result":            {[]history.NumberCall{add(1, 1, 0, 5), add(1, 1, 0, 5)}, porcupine.Illegal},
		"an unknown addition that was applied":     {[]history.NumberCall{unknown(add(5, 0, 0, 1)), get(5, 2, 3)}, porcupine.Ok},
		"an unknown addition that was not":         {[]history.NumberCall{unknown(add(5, 0, 0, 1)), get(0, 2, 3)}, porcupine.Ok},
		"an unknown addition that is applied late": {[]history.NumberCall{unknown(add(5, 0, 0, 1)), get(0, 2, 3), get(5, 4, 5)}, porcupine.Ok},
		"an unknown addition that is undone":       {[]history.NumberCall{unknown(add(5, 0, 0, 1)), get(5, 2, 3), get(0, 4, 5)}, porcupine.Illegal},
		"a set":                                    {[]history.NumberCall{set, get(7, 12, 13)}, porcupine.Ok},
		"a set that is not seen":                   {[]history.NumberCall{set, get(0, 12, 13)}, porcupine.Illegal},
		"a swap":                                   {[]history.NumberCall{swap(0, 4, true, 0, 1), swap(0, 5, false, 2, 3), get(4, 4, 5)}, porcupine.Ok},
		"a swap that was refused and done":         {[]history.NumberCall{swap(0, 4, false, 0, 1), get(4, 4, 5)}, porcupine.Illegal},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := history.CheckNumber(tc.calls, time.Minute); got != tc.want {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}
