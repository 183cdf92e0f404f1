package gateway

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Usage is what a gateway and the processes that it started use. Linux says it; other
// systems: nothing.
type Usage struct {
	RSS int64         // bytes that are resident, of all together
	CPU time.Duration // processor time since the start of each
}

// Usage asks the system.
func (g *Gateway) Usage() Usage {
	var u Usage
	for _, p := range tree(g.cmd.Process.Pid) {
		u.RSS += resident(p.pid)
		u.CPU += p.cpu
	}
	return u
}

// tick is the unit of processor times in /proc, the same on all systems that Go knows.
const tick = time.Second / 100

// process is a line of the process table.
type process struct {
	pid, parent int
	started     string // since boot: a pid that was given to another process has another
	cpu         time.Duration
}

func proc(pid int, file string) string { return "/proc/" + strconv.Itoa(pid) + "/" + file }

func look(pid int) (process, bool) {
	b, err := os.ReadFile(proc(pid, "stat"))
	if err != nil {
		return process{}, false
	}
	// The name, in brackets, may hold anything.
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(fields) < 20 {
		return process{}, false
	}
	number := func(i int) int {
		n, _ := strconv.Atoi(fields[i]) // the kernel writes numbers
		return n
	}
	return process{pid: pid, parent: number(1), started: fields[19], cpu: time.Duration(number(11)+number(12)) * tick}, true
}

// tree is a process and those that descend from it, itself first.
func tree(pid int) []process {
	root, ok := look(pid)
	if !ok {
		return []process{{pid: pid}}
	}
	names, _ := filepath.Glob("/proc/[0-9]*")
	var all []process
	for _, n := range names {
		pid, err := strconv.Atoi(filepath.Base(n))
		if err != nil {
			continue
		}
		if p, ok := look(pid); ok {
			all = append(all, p)
		}
	}
	out := []process{root}
	for i := 0; i < len(out); i++ {
		for _, p := range all {
			if p.parent == out[i].pid && !slices.ContainsFunc(out, func(o process) bool { return o.pid == p.pid }) {
				out = append(out, p)
			}
		}
	}
	return out
}

// kill ends a process that outlived its parent, if it still is that process.
func (p process) kill() {
	if now, ok := look(p.pid); !ok || now.started != p.started {
		return
	}
	if found, err := os.FindProcess(p.pid); err == nil {
		_ = found.Kill() // it may end by itself just now
	}
}

func resident(pid int) int64 {
	b, err := os.ReadFile(proc(pid, "statm"))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(b))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[1], 10, 64) // the kernel writes numbers
	return pages * int64(os.Getpagesize())
}

// Busy is the processor time that the whole machine has spent since it started.
func Busy() time.Duration {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(b), "\n")
	var sum time.Duration
	for i, f := range strings.Fields(line) {
		// user, nice, system, and, behind idle and waiting, irq, softirq, steal
		if i == 0 || i == 4 || i == 5 || i > 8 {
			continue
		}
		n, _ := strconv.ParseInt(f, 10, 64)
		sum += time.Duration(n) * tick
	}
	return sum
}

// Own is the processor time of this process.
func Own() time.Duration {
	p, _ := look(os.Getpid())
	return p.cpu
}
