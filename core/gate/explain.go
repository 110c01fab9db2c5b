package gate

import (
	"errors"
	"regexp"
	"strings"
)

// refusedObject finds the object of a missing privilege.
var refusedObject = regexp.MustCompile(
	`^permission denied for (table|sequence|schema|function|view|relation|database) (\S+)`)

// severity is the prefix of a server message.
var severity = regexp.MustCompile(`^(ERROR|FATAL): `)

// explain describes the problem and its fix for an operator.
func explain(err error) (problem, fix string) {
	var server interface {
		error
		SQLState() string
	}
	if !errors.As(err, &server) {
		return err.Error(), fixSchema
	}
	problem = severity.ReplaceAllString(server.Error(), "")
	switch code := server.SQLState(); {
	case code == "42501":
		return problem, grant(problem)
	case strings.HasPrefix(code, "28"):
		return problem, "correct the user and the password in database.url, or the server's pg_hba.conf"
	case strings.HasPrefix(code, "3D"):
		return problem, "create the database, or correct database.url"
	default:
		return problem, fixSchema
	}
}

const fixSchema = "add to the schema what is missing (attune-executor migrate status and doctor compare it), " +
	"or run the version of attune-executor that fits the schema"

// grant says which privilege to grant, if the message names its object.
func grant(message string) string {
	const to = " TO the role in database.url"
	found := refusedObject.FindStringSubmatch(message)
	if found == nil {
		return "grant what is missing" + to
	}
	kind, name := found[1], found[2]
	switch kind {
	case "sequence":
		return "GRANT USAGE, SELECT ON SEQUENCE " + name + to
	case "schema":
		return "GRANT USAGE ON SCHEMA " + name + to
	case "function":
		return "GRANT EXECUTE ON FUNCTION " + name + to
	case "database":
		return "GRANT CONNECT ON DATABASE " + name + to
	default:
		return "GRANT SELECT, INSERT, UPDATE, DELETE ON " + name + to
	}
}
