// Package roles declares the least privileges of each kind of login, and compares logins with them.
//
// grants has the privileges in the database, Broker those on the broker. Statements turns the
// declaration into the statements for one login and one schema; Compare finds what a login lacks and what
// it has beyond its role.
package roles
