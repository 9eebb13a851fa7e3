package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// The columns of a curve's file that the model is compared with, all but bytesIn per operation in
// microseconds.
const (
	timeColumn     = "time µs"
	requestsColumn = "requests"
	bytesInColumn  = "received B"
	serversColumn  = "servers' CPU µs"
)

// A measurement is what one contender has shown at one size of a curve.
type measurement struct {
	curve, contender, setting string
	size                      int
	columns                   map[string]float64
}

// readMeasurements reads the curves' files in the directory.
func readMeasurements(dir string) ([]measurement, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.csv"))
	if err != nil || len(files) == 0 {
		return nil, errors.Join(fmt.Errorf("%s: no curves", dir), err)
	}
	var all []measurement
	for _, name := range files {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		rows, err := csv.NewReader(file).ReadAll()
		if err := errors.Join(err, file.Close()); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for i, row := range rows {
			if i == 0 {
				continue
			}
			m, err := measurementOf(strings.TrimSuffix(filepath.Base(name), ".csv"), rows[0], row)
			if err != nil {
				return nil, fmt.Errorf("%s: line %d: %w", name, i+1, err)
			}
			all = append(all, m)
		}
	}
	return all, nil
}

// measurementOf reads a row: the size, the contender, the setting, and the columns.
func measurementOf(curve string, head, row []string) (measurement, error) {
	m := measurement{curve: curve, contender: row[1], setting: row[2], columns: make(map[string]float64)}
	size, err := strconv.Atoi(row[0])
	m.size = size
	for i, cell := range row[3:] {
		value, e := strconv.ParseFloat(cell, 64)
		m.columns[head[i+3]], err = value, errors.Join(err, e)
	}
	return m, err
}
