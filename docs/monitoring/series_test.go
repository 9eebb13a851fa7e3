package monitoring_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/docent-go/docent/internal/doctable"
	"github.com/docent-go/docent/internal/must"
)

// prometheusName returns the name that OpenTelemetry's exporters give a metric, without
// what is added for the parts of a histogram.
func prometheusName(name, instrument, unit string) string {
	name = strings.ReplaceAll(name, ".", "_")
	if unit == "s" {
		name += "_seconds"
	}
	if instrument == "counter" {
		name += "_total"
	}
	return name
}

// documented returns the labels of each series that Prometheus has of the metrics in
// docs/observability.md, whose tables other tests compare with the code.
func documented(t *testing.T) (labels map[string]map[string]bool, metricOf map[string]string) {
	t.Helper()
	labels, metricOf = make(map[string]map[string]bool), make(map[string]string)
	for _, section := range []string{"Client", "Locks", "Kept nodes"} {
		rows := must.Get(doctable.Read("../observability.md", section, "metric"))(t)
		for _, row := range rows {
			metric, unit := doctable.Code(row["metric"])[0], doctable.Code(row["unit"])[0]
			series := []string{""}
			if row["instrument"] == "histogram" {
				series = []string{"_bucket", "_sum", "_count"}
			}
			for _, part := range series {
				name := prometheusName(metric, row["instrument"], unit) + part
				metricOf[name] = metric
				labels[name] = map[string]bool{"job": true, "instance": true, "le": part == "_bucket"}
				for _, key := range doctable.Code(row["attributes"]) {
					labels[name][strings.ReplaceAll(key, ".", "_")] = true
				}
			}
		}
	}
	return labels, metricOf
}

var (
	selector = regexp.MustCompile(`([a-z_:0-9]+)\{([^}]*)\}`)
	matcher  = regexp.MustCompile(`([a-z_]+)[=!]~?"`)
	grouping = regexp.MustCompile(`by \(([^)]*)\)`)
)

func matchers(selector string) (labels []string) {
	for _, m := range matcher.FindAllStringSubmatch(selector, -1) {
		labels = append(labels, m[1])
	}
	return labels
}

func groups(expr string) (labels []string) {
	for _, m := range grouping.FindAllStringSubmatch(expr, -1) {
		for label := range strings.SplitSeq(m[1], ", ") {
			labels = append(labels, label)
		}
	}
	return labels
}
