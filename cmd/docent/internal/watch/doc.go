// Package watch is the command that shows how locks change: a table on a terminal, else one event a line.
package watch
