package process

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// oomKills counts the processes that the kernel has killed for want of memory in the control group of this process; 0
// if the system does not say.
func oomKills() int {
	content, err := os.ReadFile(oomCounter())
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(content)) {
		if name, count, _ := strings.Cut(strings.TrimSpace(line), " "); name == "oom_kill" {
			n, _ := strconv.Atoi(count) // an unreadable count is unknown
			return n
		}
	}
	return 0
}

// oomCounter is the file with the counter, of either version of control groups. A container may not see the path of its
// group, and has its own files at the root.
var oomCounter = sync.OnceValue(func() string {
	groups, _ := os.ReadFile("/proc/self/cgroup") // without it nothing is found
	for line := range strings.Lines(string(groups)) {
		_, kind, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, group, _ := strings.Cut(kind, ":")
		root, name := "/sys/fs/cgroup", "memory.events"
		if controllers == "memory" {
			root, name = "/sys/fs/cgroup/memory", "memory.oom_control"
		} else if controllers != "" {
			continue
		}
		for _, file := range []string{filepath.Join(root, group, name), filepath.Join(root, name)} {
			if _, err := os.Stat(file); err == nil {
				return file
			}
		}
	}
	return ""
})
