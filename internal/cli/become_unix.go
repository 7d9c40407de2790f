//go:build unix

package cli

import (
	"os/user"
	"strconv"
	"syscall"
)

// become gives up the rights of root for those of a user and its group; "": it stays.
func become(name string) error {
	if name == "" {
		return nil
	}
	who, err := user.Lookup(name)
	if err != nil {
		return usagef("name a user of this machine", "-u: %v", err)
	}
	uid, _ := strconv.Atoi(who.Uid)
	gid, _ := strconv.Atoi(who.Gid)
	if uid == syscall.Getuid() && gid == syscall.Getgid() {
		return nil
	}
	if err = syscall.Setgroups([]int{gid}); err == nil {
		err = syscall.Setgid(gid)
	}
	if err == nil {
		err = syscall.Setuid(uid)
	}
	if err != nil {
		return failedf(err, "start it as root, or as that user without -u", "cannot become %s: %v", name, err)
	}
	return nil
}
