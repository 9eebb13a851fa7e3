package cli

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// DurationVar defines a flag for a time: as Go writes it, such as 1m30s, or a number of seconds as flock and timeout
// take it, such as 10 or 0.5. As with timeout, d is a day. short is its name of one letter, "" for none.
func DurationVar(set *pflag.FlagSet, p *time.Duration, name, short string, value time.Duration, usage string) {
	*p = value
	flag := set.VarPF((*duration)(p), name, short, usage)
	if value == 0 {
		flag.DefValue = "" // the usage says what holds without the flag
	}
}

// A duration is the value of a flag.
type duration time.Duration

// String is part of pflag.Value, as the following methods are.
func (d *duration) String() string { return time.Duration(*d).String() }

// Type names the value in the help.
func (d *duration) Type() string { return "duration" }

// Set takes a time.
func (d *duration) Set(text string) error {
	parsed, err := parseDuration(text)
	*d = duration(parsed)
	return err
}

func parseDuration(text string) (time.Duration, error) {
	if parsed, err := time.ParseDuration(text); err == nil {
		return parsed, nil
	}
	unit, digits := time.Second, text
	if days, ok := strings.CutSuffix(text, "d"); ok {
		unit, digits = 24*time.Hour, days
	}
	number, err := strconv.ParseFloat(digits, 64)
	if scaled := number * float64(unit); err == nil && math.Abs(scaled) < math.MaxInt64 {
		return time.Duration(scaled), nil
	}
	return 0, errors.New("must be a time such as 10, 1m30s or 500ms")
}
