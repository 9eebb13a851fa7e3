package watch

import (
	tea "charm.land/bubbletea/v2"

	"github.com/docent-go/docent/cmd/docent/inspect"
)

// UpdateOf returns the message that brings a view of f's directory to a Model.
func UpdateOf(f *Follower, view inspect.View) tea.Msg { return f.update(view) }

// FitTail is fitTail.
func FitTail(text string, width int) string { return fitTail(text, width) }
