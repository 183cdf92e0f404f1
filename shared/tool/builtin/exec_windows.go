//go:build windows

package builtin

import (
	"cmp"
	"os/exec"
	"strconv"
	"syscall"
)

// shellOf is the program that runs a command, and its flag.
func shellOf(configured string) (program, flag string) {
	return cmp.Or(configured, "cmd.exe"), "/C"
}

// ownGroup keeps signals of this process's console away from the command.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// killGroup ends the command and its descendants that can still be found by their
// parents: a group is no unit that Windows can end.
func killGroup(cmd *exec.Cmd) error {
	return exec.Command("taskkill.exe", "/T", "/F", "/PID", strconv.Itoa(cmd.Process.Pid)).Run()
}
