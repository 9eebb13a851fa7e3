package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// gather does what -fold asks for: it writes the values of several runs' curves, and the exponents.
func (f flags) gather(files []string) error {
	if len(files) == 0 || f.csv == "" {
		return errors.New("-fold: needs -csv and the JSON files of runs with -scale as arguments")
	}
	results, err := foldFiles(files)
	if err != nil {
		return err
	}
	if err := writeValues(f.csv, results); err != nil {
		return err
	}
	all, err := readAllValues(f.csv)
	if err != nil {
		return err
	}
	var table strings.Builder
	exponents(&table, all)
	if f.page != "" {
		return replaceExponents(f.page, table.String())
	}
	_, err = os.Stdout.WriteString(table.String())
	return err
}

// foldFiles reads the results of runs. Where two runs have measured a contender on the same curve in
// the same setting, the later file counts.
func foldFiles(files []string) ([]curveResult, error) {
	var all []curveResult
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var results []curveResult
		if err := json.Unmarshal(data, &results); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, r := range results {
			if len(r.Climbs) == 0 {
				return nil, fmt.Errorf("%s: no curve", file)
			}
			all = fold(all, r)
		}
	}
	return all, nil
}

// fold adds a result to those that there are.
func fold(all []curveResult, r curveResult) []curveResult {
	same := func(other curveResult) bool { return other.Name == r.Name && other.Setting == r.Setting }
	at := slices.IndexFunc(all, same)
	if at < 0 {
		return append(all, r)
	}
	for _, c := range r.Climbs {
		i := slices.IndexFunc(all[at].Climbs, func(other climb) bool { return other.Contender == c.Contender })
		if i < 0 {
			all[at].Climbs = append(all[at].Climbs, c)
		} else {
			all[at].Climbs[i] = c
		}
	}
	return all
}

// readAllValues reads the files that writeValues has written into the directory, in the order of the
// table of curves.
func readAllValues(dir string) ([]values, error) {
	var all []values
	for _, c := range curves() {
		file, err := os.Open(filepath.Join(dir, c.name+".csv"))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		v, err := readValues(c.name, file)
		if err := errors.Join(err, file.Close()); err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}
