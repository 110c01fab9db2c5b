package config

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// The addresses of servers hold passwords. Parsers split a malformed one in different places, and the error of each
// prints what it takes for a host. So an address whose login can be read in two ways is refused before a parser sees
// it, and MaskURL hides all of it.

const mask = "***"

// schemed matches an address that is a URL. The address of a database may also have the keyword form,
// host=… dbname=….
var schemed = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)

func isURL(address string) bool { return schemed.MatchString(address) }

// parts are the parts of a URL as this package splits it: SCHEME://LOGIN@HOSTS TAIL.
type parts struct {
	scheme, login, hosts, tail string
	named                      bool // there is a login
}

func split(address string) parts {
	scheme, rest, _ := strings.Cut(address, "://")
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	p := parts{scheme: scheme, hosts: rest[:end], tail: rest[end:]}
	if at := strings.LastIndexByte(p.hosts, '@'); at >= 0 {
		p.login, p.hosts, p.named = p.hosts[:at], p.hosts[at+1:], true
	}
	return p
}

// first returns the URL with only the first of its hosts: the standard library cannot read several.
func (p parts) first() string {
	host, _, _ := strings.Cut(p.hosts, ",")
	login := ""
	if p.named {
		login = p.login + "@"
	}
	return p.scheme + "://" + login + host + p.tail
}

// oneHost returns a URL with only the first of its hosts, and the list of its hosts.
func oneHost(address string) (single, list string) {
	if !isURL(address) {
		return address, ""
	}
	p := split(address)
	return p.first(), p.hosts
}

// raw returns a character of the login that must be encoded, or empty. A character that ends the login for one parser
// and not for the operator is one: / ? # before the last @.
func (p parts) raw() string {
	path, _, _ := strings.Cut(p.tail, "?")
	if strings.Contains(path, "@") || !p.named && strings.Contains(p.tail, "@") && !isPort(p.hosts) {
		return p.tail[:1]
	}
	_, query, _ := strings.Cut(p.tail, "?")
	afterPassword := false
	for field := range strings.SplitSeq(query, "&") {
		key, _, _ := strings.Cut(field, "=")
		known := slices.Contains(connectionKeys, key)
		if !known && !secretParameter(key) && strings.Contains(field, "@") {
			return p.tail[:1]
		}
		if afterPassword && !known {
			return "&"
		}
		afterPassword = afterPassword || secretParameter(key)
	}
	for i, r := range p.login {
		switch {
		case r == '%' && !encoded.MatchString(p.login[i:]), r == utf8.RuneError, !strings.ContainsRune(loginSigns, r) &&
			(r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z'):
			return string(r)
		case r == '@' && strings.HasPrefix(p.scheme, "postgres"): // libpq ends the login at the first one
			return "@"
		}
	}
	return ""
}

// loginSigns are the signs that a login may contain as they are.
const loginSigns = "-._~!$&'()*+,;=:%@"

var encoded = regexp.MustCompile(`^%[0-9A-Fa-f]{2}`)

// isPort reports whether each host has a port that is a number, or no colon.
func isPort(hosts string) bool {
	for host := range strings.SplitSeq(hosts, ",") {
		_, port, found := strings.Cut(host[strings.LastIndexByte(host, ']')+1:], ":")
		if found && (port == "" || strings.Trim(port, "0123456789") != "") {
			return false
		}
	}
	return true
}

// AddressProblem says what is wrong with the address of a server. It repeats at most one character of it, as it may
// have a password.
func AddressProblem(address string, schemes ...string) string {
	likeThis := fmt.Sprintf("must be a URL like %s://user:password@host:port", schemes[0])
	if schemes[0] == "postgresql" && !isURL(address) && strings.Contains(address, "=") {
		if keywords(address) == nil {
			return "must be a list of KEY=VALUE: put a value with blanks between single quotes, as in password='a b'"
		}
		return ""
	}
	p := split(address)
	if !isURL(address) || !slices.Contains(schemes, p.scheme) {
		return likeThis
	}
	if raw := p.raw(); raw != "" {
		return fmt.Sprintf("has a raw %q in its user or password: write it as %s, or put the password into a file "+
			"(password_file)", raw, percent(raw))
	}
	parsed, err := url.Parse(p.first())
	if err != nil || strings.HasPrefix(p.scheme, "http") && strings.ContainsAny(p.tail, "?#") {
		return likeThis
	}
	if parsed.Host == "" && parsed.RawQuery == "" {
		return "names no host"
	}
	return ""
}

func percent(text string) string {
	var out strings.Builder
	for _, b := range []byte(text) {
		fmt.Fprintf(&out, "%%%02X", b)
	}
	return out.String()
}

// pair is a keyword of a connection string. The positions are those of the value with its quotes.
type pair struct {
	key, value string
	from, to   int
}

// keywords reads a connection string as libpq does; nil if it cannot be read, or if an unquoted password seems to
// contain blanks.
func keywords(address string) (list []pair) {
	const blank = " \t\n\r\f\v"
	skip := func(i int) int {
		for i < len(address) && strings.IndexByte(blank, address[i]) >= 0 {
			i++
		}
		return i
	}
	for i := skip(0); i < len(address); i = skip(i) {
		equals := strings.IndexByte(address[i:], '=')
		if equals < 0 {
			return nil
		}
		key := strings.TrimRight(address[i:i+equals], blank)
		before := len(list) - 1
		if !keyword.MatchString(key) || before >= 0 && secretKey(list[before].key) &&
			!strings.HasPrefix(address[list[before].from:], "'") && !slices.Contains(connectionKeys, key) {
			return nil
		}
		i = skip(i + equals + 1)
		p := pair{key: key, from: i}
		quoted := i < len(address) && address[i] == '\''
		if quoted {
			i++
		}
		var value strings.Builder
		for ; i < len(address); i++ {
			c := address[i]
			if quoted && c == '\'' || !quoted && strings.IndexByte(blank, c) >= 0 {
				break
			}
			if c == '\\' && i+1 < len(address) {
				i++
			}
			value.WriteByte(address[i])
		}
		if quoted {
			if i == len(address) {
				return nil
			}
			i++
		}
		p.value, p.to = value.String(), i
		list = append(list, p)
	}
	return list
}

// connectionKeys are the keywords that may follow an unquoted password.
var connectionKeys = []string{
	"host", "hostaddr", "port", "dbname", "database", "user", "passfile", "sslmode", "sslcert", "sslkey", "sslrootcert",
	"sslpassword", "sslsni", "sslnegotiation", "connect_timeout", "application_name", "options", "search_path",
	"target_session_attrs", "service", "servicefile", "krbsrvname", "krbspn", "require_auth", "channel_binding",
	"client_encoding", "statement_timeout", "lock_timeout", "timezone", "default_query_exec_mode",
}

// keyword matches the keywords of a connection string, among them the settings of a session. Another text before the
// first = is part of a malformed URL.
var keyword = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*$`)

// passwordKey matches a keyword that is a password, or is meant to be one: pasword, passwd, pwd.
var passwordKey = regexp.MustCompile(`(?i)pas|pw|word|secret`)

// secretKey reports whether a keyword is a password.
func secretKey(key string) bool { return passwordKey.MatchString(key) && key != "passfile" }

// secretParameter reports whether a parameter of a query, as it is in the URL, is a password.
func secretParameter(key string) bool {
	name, err := url.QueryUnescape(key)
	return err != nil || secretKey(name)
}

// MaskURL hides the passwords in a URL or in a keyword connection string. It hides all of one that can be read in two
// ways.
func MaskURL(address string) string {
	if !isURL(address) {
		if !strings.Contains(address, "=") {
			if strings.ContainsAny(address, ":@") {
				return mask
			}
			return address
		}
		list := keywords(address)
		if list == nil {
			return mask
		}
		for _, p := range slices.Backward(list) {
			if secretKey(p.key) {
				address = address[:p.from] + mask + address[p.to:]
			}
		}
		return address
	}
	p := split(address)
	if _, err := url.Parse(p.first()); err != nil || p.raw() != "" || strings.Contains(p.tail, "@") {
		return mask
	}
	if path, query, has := strings.Cut(p.tail, "?"); has {
		fields := strings.Split(query, "&")
		for i, field := range fields {
			key, _, _ := strings.Cut(field, "=")
			if secretParameter(key) {
				fields[i] = key + "=" + mask
			}
		}
		p.tail = path + "?" + strings.Join(fields, "&")
	}
	login := ""
	if p.named {
		user, _, has := strings.Cut(p.login, ":")
		if login = user + "@"; has {
			login = user + ":" + mask + "@"
		}
	}
	return p.scheme + "://" + login + p.hosts + p.tail
}

// withPassword returns the address with another password.
func withPassword(address, password string) (string, error) {
	errNoUser := fmt.Errorf("the address it belongs to must name a user")
	if !isURL(address) {
		user := false
		list := keywords(address)
		for _, p := range slices.Backward(list) {
			if user = user || p.key == "user"; p.key == "password" {
				address = address[:p.from] + "''" + address[p.to:] // the last one wins
			}
		}
		if !user {
			return "", errNoUser
		}
		return address + " password='" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(password) + "'", nil
	}
	p := split(address)
	if p.raw() != "" {
		return address, nil // AddressProblem refuses it
	}
	user, _, _ := strings.Cut(p.login, ":")
	if user != "" {
		return p.scheme + "://" + user + url.UserPassword("", password).String() + "@" + p.hosts + p.tail, nil
	}
	if _, query, _ := strings.Cut(p.tail, "?"); strings.HasPrefix(query, "user=") || strings.Contains(query, "&user=") {
		return address + "&password=" + strings.ReplaceAll(url.QueryEscape(password), "+", "%20"), nil
	}
	return "", errNoUser
}

// loginOf returns the user and the password in an address, as far as it has them.
func loginOf(address string) (user, password string) {
	if !isURL(address) {
		for _, p := range keywords(address) {
			switch p.key {
			case "user":
				user = p.value
			case "password":
				password = p.value
			}
		}
		return user, password
	}
	parsed, err := url.Parse(split(address).first())
	if err != nil {
		return "", ""
	}
	password, _ = parsed.User.Password()
	if user = parsed.User.Username(); user == "" {
		query := parsed.Query()
		return query.Get("user"), query.Get("password")
	}
	return user, password
}

// Encrypted reports whether an address says that connections are encrypted, or that they need not be: by its scheme
// or by sslmode.
func Encrypted(address string) bool {
	if !isURL(address) {
		return slices.ContainsFunc(keywords(address), func(p pair) bool { return p.key == "sslmode" })
	}
	p := split(address)
	parsed, err := url.Parse(p.first())
	return p.scheme == "amqps" || p.scheme == "https" || err == nil && parsed.Query().Has("sslmode")
}

// Loopback reports whether all hosts of a URL are this machine: by name, by address, or by a socket.
func Loopback(address string) bool {
	for host := range strings.SplitSeq(split(address).hosts, ",") {
		name := (&url.URL{Host: host}).Hostname()
		if name != "" && name != "localhost" && !isLoopback(name) {
			return false
		}
	}
	return true
}
