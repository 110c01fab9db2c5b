package checkup

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/roles"
)

// mostNamed bounds the privileges that a finding names.
const mostNamed = 12

// lookPrivileges compares the database login with the role.
func lookPrivileges(ctx context.Context, v *visit) (Finding, error) {
	d, err := roles.Compare(ctx, v.Store.Pool(), v.As, v.Store.Schema(), v.Store.Login())
	if err != nil {
		return Finding{}, err
	}
	apply := fmt.Sprintf("run as the owner of the tables: attune-executor roles apply %s --login %s", v.As, d.Login)
	if len(d.Missing) > 0 {
		return failed(apply, "the login %s lacks %d of the privileges of the role %s", d.Login, len(d.Missing), v.As).
			with(first(d.Missing)...), nil
	}
	f := passed("the login %s has the privileges of the role %s", d.Login, v.As)
	if len(d.Beyond) > 0 {
		f.Found += ", and more than it needs"
		f.Fix = apply + ", or use a login of its own"
		f = f.with(first(d.Beyond)...)
	}
	return f, nil
}

// first bounds a list.
func first(list []string) []string {
	if n := len(list) - mostNamed; n > 0 {
		return append(list[:mostNamed:mostNamed], fmt.Sprintf("and %d more", n))
	}
	return list
}

// lookPermissions compares the permissions of the broker's user with the role.
func lookPermissions(ctx context.Context, v *visit) (Finding, error) {
	vhost, err := broker.VHostOf(v.Config.MessageQueue.URL)
	if err != nil {
		return Finding{}, err
	}
	user := userOf(v.Config.MessageQueue.URL)
	wants := roles.BrokerOf(v.As)
	set := strings.Join(wants.Commands(vhost, user), "; ")
	compare := "compare `rabbitmqctl list_user_permissions " + user + "` with: " + set
	if v.Management == nil {
		f := skipped("message_queue.management_url is not set: the permissions of %s are not seen", user)
		f.Fix = compare
		return f, nil
	}
	has, err := v.Management.Permissions(ctx, user)
	if errors.Is(err, broker.ErrNotFound) {
		return failed(set, "the broker's user %s has no permission on the virtual host %s", user, vhost), nil
	}
	if err != nil {
		f := skipped("the permissions of the broker's user %s cannot be read: %s", user, lastLine(err))
		if broker.Denied(err) {
			f = skipped("only an administrator of the broker may read the permissions of %s", user)
		}
		f.Fix = compare
		return f, nil
	}
	differs := ""
	for _, one := range []struct{ what, has, wants string }{
		{"configure", has.Configure, wants.Configure},
		{"write", has.Write, wants.Write},
		{"read", has.Read, wants.Read},
	} {
		if one.has != one.wants {
			differs += fmt.Sprintf("%s is %q; ", one.what, one.has)
		}
	}
	if differs == "" {
		return passed("the broker's user %s has the permissions of the role %s", user, v.As), nil
	}
	differs = strings.TrimSuffix(differs, "; ")
	if has.Configure == everything && has.Write == everything && has.Read == everything {
		f := passed("the broker's user %s has the permissions of the role %s, and more than it needs", user, v.As)
		f.Fix = set
		return f.with(differs), nil
	}
	return failed(set, "the permissions of the broker's user %s are not those of the role %s", user, v.As).
		with(differs), nil
}

// everything matches each name.
const everything = ".*"

// userOf returns the user in an AMQP URL; guest if it names none.
func userOf(amqpURL string) string {
	parsed, err := url.Parse(amqpURL)
	if err != nil || parsed.User.Username() == "" {
		return "guest"
	}
	return parsed.User.Username()
}
