package watchdog

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

const procDir = "/proc"

// childrenByParent reads the whole process table, as far as it may be seen. A process that ends meanwhile is left out.
func childrenByParent() map[int][]int {
	entries, err := os.ReadDir(procDir)
	if err != nil {
		return nil
	}
	children := map[int][]int{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if parent, ok := parentOf(pid); ok {
			children[parent] = append(children[parent], pid)
		}
	}
	return children
}

// parentOf reads the fourth field of the stat file: number, (name), state, parent. The name may hold anything, brackets and blanks
// too, so the fields are counted from its last bracket.
func parentOf(pid int) (int, bool) {
	b, err := os.ReadFile(filepath.Join(procDir, strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, false
	}
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(fields) < 2 {
		return 0, false
	}
	parent, err := strconv.Atoi(string(fields[1]))
	return parent, err == nil
}
