package yamldoc

import "strings"

// Nearest finds the known name that a misspelt one most likely means.
func Nearest(name string, known []string) string {
	name = strings.ReplaceAll(strings.ToLower(name), "-", "_")
	for _, k := range known {
		if len(k) > 3 && oneSlip(name, k) {
			return k
		}
	}
	return ""
}

// oneSlip is true where at most one letter is missing, added or another, or two
// neighbours have changed places.
func oneSlip(a, b string) bool {
	for a != "" && b != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for a != "" && b != "" && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return len(a) <= 1 && len(b) <= 1 || len(a) == 2 && len(b) == 2 && a[0] == b[1] && a[1] == b[0]
}
