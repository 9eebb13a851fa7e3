// Package instrument makes the instruments of OpenTelemetry's metrics.
package instrument

import "go.opentelemetry.io/otel"

// Of returns the instrument that a meter made. If the provider has refused it, the instrument does
// nothing, and the application's error handler is notified.
func Of[T any](made T, err error) T {
	if err != nil {
		otel.Handle(err)
	}
	return made
}
