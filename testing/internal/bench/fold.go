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

// gather does what -fold asks for: it adds the values of several runs' curves to those in the directory
// of -csv, and writes the exponents of all.
func (f flags) gather(files []string) error {
	if len(files) == 0 || f.csv == "" {
		return errors.New("-fold: needs -csv and the JSON files of runs with -scale as arguments")
	}
	results, err := readRuns(files)
	if err != nil {
		return err
	}
	all, err := readAllValues(f.csv)
	if err != nil {
		return err
	}
	if all, err = add(all, results); err != nil {
		return err
	}
	if err := writeValues(f.csv, all); err != nil {
		return err
	}
	if all, err = readAllValues(f.csv); err != nil { // in the order of the curves
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

// readRuns reads the results of runs, in the order of the files.
func readRuns(files []string) ([]curveResult, error) {
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
		}
		all = append(all, results...)
	}
	return all, nil
}

// add adds results to the values that there are. Of a contender on one curve in one setting, the last
// result counts.
func add(all []values, results []curveResult) ([]values, error) {
	for _, r := range results {
		newer := valuesOf(r)
		at := slices.IndexFunc(all, func(v values) bool { return v.curve == r.Name })
		if at < 0 {
			all = append(all, newer)
			continue
		}
		var err error
		if all[at], err = all[at].with(newer); err != nil {
			return nil, err
		}
	}
	return all, nil
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
