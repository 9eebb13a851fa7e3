package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
)

// measureCurves does what -scale asks for.
func (f flags) measureCurves(ctx context.Context, b *bench) error {
	wanted, err := regexp.Compile(f.scale)
	if err != nil {
		return fmt.Errorf("-scale: %w", err)
	}
	if f.limit < 1 {
		return fmt.Errorf("-limit %d: must be positive", f.limit)
	}
	var chosen []curve
	for _, c := range curves() {
		if wanted.MatchString(c.name) {
			chosen = append(chosen, c)
		}
	}
	if len(chosen) == 0 {
		return fmt.Errorf("-scale: no curve is called %s", f.scale)
	}
	results, err := b.scale(ctx, chosen, f.limit)
	return errors.Join(err, f.writeCurves(results))
}

// writeCurves writes the curves to standard output and where the flags say.
func (f flags) writeCurves(results []curveResult) error {
	var text strings.Builder
	var errs []error
	for _, r := range results {
		r.markdown(&text)
	}
	if f.markdown != "" {
		errs = append(errs, writeFile(f.markdown, []byte(text.String())))
	}
	if f.json != "" {
		data, err := json.MarshalIndent(results, "", "\t")
		errs = append(errs, err, writeFile(f.json, append(data, '\n')))
	}
	_, err := os.Stdout.WriteString(text.String())
	return errors.Join(append(errs, err)...)
}
