//go:build tools

// Package tools pins the command that the test cluster builds.
package tools

import _ "sigs.k8s.io/kwok/cmd/kwok"
