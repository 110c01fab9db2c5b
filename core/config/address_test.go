package config_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/config"
)

// oddPasswords are 240 passwords with every character that parsers of addresses treat differently, at its start, in its
// middle and at its end.
func oddPasswords() (list []string) {
	for i, sign := range []string{
		"@", "/", "#", "?", "%", " ", ":", "@@", "/@", "%zz", "%2", "?a=b@", "://", "'", `"`, `\`, "`", "=", "&", "+", ",",
		"[", "]", "{", "}", "|", "^", "<", ">", "ä", "\u202e", "\x1b", "\t", "\n", "' '", " ssw=", "12/34", ";", "~", "!",
	} {
		for j, form := range []string{"%[1]sgeheim%[2]s", "gehe%[1]sim%[2]s", "geheim%[2]s%[1]s", "12%[1]sgehe@im%[2]s",
			"77%[1]s", "p%[1]sgehe%[1]sim%[2]s"} {
			list = append(list, fmt.Sprintf(form, sign, strings.Repeat("q", 1+j)+string(rune('A'+i%26))))
		}
	}
	return list
}

// leaks returns a piece of four or more characters of a password in a text.
func leaks(text, password string) string {
	runes := []rune(password)
	for i := range len(runes) - 3 {
		if piece := string(runes[i : i+4]); strings.Contains(text, piece) {
			return piece
		}
	}
	return ""
}

// An address with any password is either refused with advice, or read as it was meant. Nothing prints a part of it.
func TestNoPartOfAPasswordIsShown(t *testing.T) {
	t.Parallel()
	for i, password := range oddPasswords() {
		for _, form := range []struct{ scheme, address string }{
			{"postgresql", "postgresql://anna:%s@db.example:5432/attune"},
			{"postgresql", "postgresql://anna:%s@db1,db2:5433/attune?target_session_attrs=any"},
			{"postgresql", "postgresql://anna:%s@/attune?host=/run/postgresql"},
			{"postgresql", "postgresql:///attune?host=db&user=anna&password=%s"},
			{"postgresql", "host=db user=anna password=%s dbname=attune"},
			{"postgresql", "password=%s host=db user=anna"},
			{"postgresql", "host=db user=anna password='%s"},
			{"postgresql", "postgresql://db/attune?sslpassword=%s&sslkey=key"},
			{"postgresql", "postgresql://db/attune?p%%61ssword=%s"},
			{"postgresql", "host=db user=anna sslpassword=%s dbname=attune"},
			{"postgresql", "host=db user=anna pasword='%s' dbname=attune"},
			{"postgresql", "postgresql://db/attune?user=anna&pwd=%s"},
			{"postgresql", "postgresql//anna:%s@db/attune?a=b"},
			{"postgresql", "anna:%s@db/attune sslmode=disable"},
			{"amqp", "amqp://anna:%s@mq.example:5672/attune"},
			{"amqp", "amqp://anna:%s@mq1,mq2"},
			{"http", "http://anna:%s@mq.example:15672"},
		} {
			address := fmt.Sprintf(form.address, password)
			require.Empty(t, leaks(config.MaskURL(address), password), "%q", address)
			problem := config.AddressProblem(address, form.scheme, form.scheme+"s")
			require.Empty(t, leaks(problem, password), "%q", address)
			if i%13 != 0 { // loading takes longer
				continue
			}
			shown := ""
			key := map[string]string{
				"postgresql": "database.url", "amqp": "message_queue.url", "http": "message_queue.management_url",
			}[form.scheme]
			variable := "ATTUNE__" + strings.ToUpper(strings.ReplaceAll(key, ".", "__"))
			cfg, err := config.Load("", []string{variable + "=" + address})
			if err != nil {
				shown = err.Error()
			} else {
				for _, e := range cfg.Explain() {
					if e.Key == key {
						shown = e.Value
					}
				}
			}
			require.Empty(t, leaks(shown, password), "%q: %s", address, shown)
		}
	}
}

// An encoded password is accepted and hidden, and a raw character is named with its encoding.
func TestRawCharactersOfALoginAreNamed(t *testing.T) {
	t.Parallel()
	for _, password := range oddPasswords() {
		login := url.UserPassword("anna", password)
		for scheme, rest := range map[string]string{"postgresql": "@db/x", "amqp": "@mq:5672/v", "http": "@mq:15672"} {
			address := scheme + "://" + login.String() + rest
			require.Empty(t, config.AddressProblem(address, scheme), address)
			require.Equal(t, scheme+"://anna:***"+rest, config.MaskURL(address))
		}
	}
	for address, want := range map[string]string{
		"postgresql://u:p@ss@db/x":     "%40",
		"postgresql://u:p/ss@db/x":     "%2F",
		"postgresql://u:12/ss@db/x":    "%2F",
		"postgresql://u:p#ss@db/x":     "%23",
		"postgresql://u:p?ss@db/x":     "%3F",
		"postgresql://u:p ss@db/x":     "%20",
		"postgresql://u:p%ss@db/x":     "%25",
		"postgresql://u:pä@db/x":       "%C3%A4",
		"postgresql://u/v:p@db/x":      "%2F",
		"amqp://u:p@s/s@mq:5672/%2f":   "%2F",
		"http://u:p#s@mq:15672":        "%23",
		"https://u:p\"s@mq:15672":      "%22",
		"postgresql://u:p@db/x@y":      "%2F",
		"postgresql://u:p@ss:5@db/x":   "%40",
		"postgresql://db/x":            "",
		"postgresql://db:5/x?user=u@v": "",
		"postgresql://u:p:q@db/x":      "",
		"http://u:?ss@mq:15672":        "%3F",
		"postgresql://u:77?ss@db:5/x":  "%3F",
		"postgresql://u:77?s=s@db:5/x": "%3F",
		"amqp://u:p@ss@mq/x":           "", // every parser here reads it alike
		"postgresql://[::1]:5/x":       "",
		"postgresql://u:p@[::1]:5/x":   "",
	} {
		scheme, _, _ := strings.Cut(address, ":")
		problem := config.AddressProblem(address, scheme)
		if want == "" {
			require.Empty(t, problem, address)
			continue
		}
		require.Contains(t, problem, "write it as "+want, address)
	}
}

// A password file goes with every form of an address that names a user, and is read again for every connection.
func TestPasswordFilesOfEveryFormAreReadAgain(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"postgresql://anna@db/attune":                               "postgresql://anna:a%27%20%2Fb@db/attune",
		"postgresql://anna:old@db1,db2/attune":                      "postgresql://anna:a%27%20%2Fb@db1,db2/attune",
		"postgresql://anna@/attune?host=/run/postgresql":            "postgresql://anna:a%27%20%2Fb@/attune?host=/run/postgresql",
		"postgresql:///attune?host=/run/postgresql&user=anna":       "postgresql:///attune?host=/run/postgresql&user=anna&password=a%27%20%2Fb",
		"host=/run/postgresql user=anna dbname=attune":              `host=/run/postgresql user=anna dbname=attune password='a\' /b'`,
		"host=/run/postgresql user=anna password=old dbname=attune": `host=/run/postgresql user=anna password='' dbname=attune password='a\' /b'`,
	} {
		file := filepath.Join(t.TempDir(), "password")
		write := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
		write("a' /b\n")
		cfg, err := config.Load("",
			[]string{"ATTUNE__DATABASE__URL=" + address, "ATTUNE__DATABASE__PASSWORD_FILE=" + file})
		require.NoError(t, err, address)
		require.Equal(t, want, strings.ReplaceAll(cfg.Database.URL, "'%20", "%27%20"), address)
		require.Empty(t, config.AddressProblem(cfg.Database.URL, "postgresql"))
		login := cfg.Login("database.url")
		requireLogin := func(password string) {
			user, now := login()
			require.Equal(t, "anna", user, address)
			require.Equal(t, password, now, address)
		}
		requireLogin("a' /b")
		write("new@")
		requireLogin("new@")
		write("") // in the middle of a replacement
		requireLogin("new@")
		require.NoError(t, os.Remove(file))
		requireLogin("new@")
	}
	_, err := config.Load("", []string{"ATTUNE__DATABASE__URL=postgresql://db/x", "ATTUNE__DATABASE__PASSWORD_FILE=/dev/null"})
	require.ErrorContains(t, err, "must name a user")
}

// The files of whole addresses and of the broker's password are read again too, and the management API follows.
func TestLoginsFollowTheirFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	whole, password := filepath.Join(dir, "url"), filepath.Join(dir, "password")
	write := func(path, text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	write(whole, "amqp://anna@mq/v")
	write(password, "one")
	cfg, err := config.Load("", []string{
		"ATTUNE__MESSAGE_QUEUE__URL_FILE=" + whole, "ATTUNE__MESSAGE_QUEUE__PASSWORD_FILE=" + password,
	})
	require.NoError(t, err)
	require.Nil(t, cfg.Login("database.url"))
	for _, key := range []string{"message_queue.url", "message_queue.management_url"} {
		login := cfg.Login(key)
		write(whole, "amqp://berta@mq/v")
		write(password, "two")
		user, now := login()
		require.Equal(t, []string{"berta", "two"}, []string{user, now}, key)
	}
}

// A management URL without a password has the broker's login, also a rotated one. Another user has its own.
func TestManagementSharesTheLoginOfTheBroker(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "password")
	for address, want := range map[string]string{
		"http://mq:15672":          "http://anna:a%20%2Fb@mq:15672",
		"http://anna@mq:15672":     "http://anna:a%20%2Fb@mq:15672",
		"https://m1,m2:15671/base": "https://anna:a%20%2Fb@m1,m2:15671/base",
		"http://berta@mq:15672":    "http://berta@mq:15672",
		"http://anna:x@mq:15672":   "http://anna:x@mq:15672",
		"http://anna:@mq:15672":    "http://anna:@mq:15672",
	} {
		require.NoError(t, os.WriteFile(file, []byte("a /b"), 0o600))
		cfg, err := config.Load("", []string{"ATTUNE__MESSAGE_QUEUE__URL=amqp://anna@mq/v",
			"ATTUNE__MESSAGE_QUEUE__MANAGEMENT_URL=" + address, "ATTUNE__MESSAGE_QUEUE__PASSWORD_FILE=" + file})
		require.NoError(t, err, address)
		require.Equal(t, want, cfg.MessageQueue.ManagementURL)
		login := cfg.Login("message_queue.management_url")
		if address == want {
			require.Nil(t, login, address)
			continue
		}
		require.NoError(t, os.WriteFile(file, []byte("new"), 0o600))
		user, password := login()
		require.Equal(t, []string{"anna", "new"}, []string{user, password}, address)
	}
}

// Every user of the machine can read a secret in a public configuration file; a short jwt_secret can be guessed.
func TestPublicAndShortSecrets(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "attune.yaml")
	for text, secret := range map[string]bool{
		"database: {url: 'postgresql://u:p@db/x'}":         true,
		"database: {url: 'postgresql://u@db/x'}":           false,
		"security: {jwt_secret: 0123456789abcdef}":         true,
		"executor: {no_workers: wait}":                     false,
		"message_queue: {management_url: 'http://u:p@mq'}": true,
	} {
		for mode, public := range map[os.FileMode]bool{0o644: true, 0o640: false, 0o600: false} {
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			require.NoError(t, os.Chmod(path, mode))
			cfg, err := config.Load(path, nil)
			require.NoError(t, err)
			if secret && public {
				require.Contains(t, strings.Join(cfg.Warnings, ";"), "every user of this machine can read "+path, text)
			} else {
				require.Empty(t, cfg.Warnings, text)
			}
		}
	}
	_, err := config.Load("", []string{"ATTUNE__SECURITY__JWT_SECRET=x"})
	require.ErrorContains(t, err, "security.jwt_secret: the secret must have at least 16 characters")
}
