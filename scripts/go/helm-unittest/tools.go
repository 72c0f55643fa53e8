//go:build tools

// Package tools pins the command that scripts/tools builds.
package tools

import _ "github.com/helm-unittest/helm-unittest/cmd/helm-unittest"
