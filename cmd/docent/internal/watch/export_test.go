package watch

import (
	tea "charm.land/bubbletea/v2"

	"github.com/docent-go/docent/cmd/docent/inspect"
)

// UpdateOf returns the message that brings a view of root to a Model.
func UpdateOf(root string, view inspect.View) tea.Msg { return update{root, view} }
