package process

import (
	"fmt"
	"os"
	"os/user"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// User is the user of a child.
type User struct {
	// Name and Home are set in the environment of children.
	Name, Home string
	// UID, GID and Groups are the rights of children.
	UID, GID uint32
	Groups   []uint32
}

// LookUpUser reads USER or USER:GROUP, names or numbers. A given group replaces all groups of the user.
func LookUpUser(text string) (User, error) {
	name, group, only := strings.Cut(text, ":")
	found, err := user.Lookup(name)
	if err != nil {
		if found, err = user.LookupId(name); err != nil {
			return userOfNumbers(name, group)
		}
	}
	u := User{Name: found.Username, Home: found.HomeDir}
	if u.UID, err = number(found.Uid); err != nil {
		return User{}, err
	}
	if only {
		u.GID, err = lookUpGroup(group)
		return u, err
	}
	if u.GID, err = number(found.Gid); err != nil {
		return User{}, err
	}
	groups, err := found.GroupIds()
	if err != nil {
		return User{}, fmt.Errorf("find the groups of user %s: %w", name, err)
	}
	for _, one := range groups {
		id, err := number(one)
		if err != nil {
			return User{}, err
		}
		u.Groups = append(u.Groups, id)
	}
	return u, nil
}

// userOfNumbers is a user without a name on this machine.
func userOfNumbers(name, group string) (User, error) {
	uid, err := number(name)
	if err != nil {
		return User{}, fmt.Errorf("there is no user %s", name)
	}
	if group == "" {
		return User{}, fmt.Errorf("user %s has no name here: add a group, as in %s:GROUP", name, name)
	}
	gid, err := lookUpGroup(group)
	return User{Name: name, Home: "/", UID: uid, GID: gid}, err
}

func lookUpGroup(name string) (uint32, error) {
	if found, err := user.LookupGroup(name); err == nil {
		return number(found.Gid)
	}
	gid, err := number(name)
	if err != nil {
		return 0, fmt.Errorf("there is no group %s", name)
	}
	return gid, nil
}

func number(text string) (uint32, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	return uint32(n), err
}

// credential is nil for the user of this process.
func (u *User) credential() *syscall.Credential {
	if u == nil {
		return nil
	}
	return &syscall.Credential{Uid: u.UID, Gid: u.GID, Groups: u.Groups}
}

// own gives a pipe to the user. Only on Linux is a pipe opened by name with the rights of its owner.
func (u *User) own(pipe *os.File) error {
	if u == nil || runtime.GOOS != "linux" {
		return nil
	}
	return pipe.Chown(int(u.UID), int(u.GID))
}
