package message

import (
	"bytes"
	"encoding/json"
)

// PeekDispatch reads what a dispatch is about from a body that Decode refuses: one that is
// too large, nested too deeply, or broken behind these fields. It reports whether execution
// and worker were found. Config is never set.
func PeekDispatch(body []byte) (Dispatch, bool) {
	var d Dispatch
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	// path holds the member names that lead to the open objects; lists have an empty one.
	var path []string
	var kinds []json.Delim
	key, isKey := "", false
	for {
		token, err := decoder.Token()
		if err != nil { // the end, or where it is broken
			return d, d.ExecutionID > 0 && d.WorkerID > 0
		}
		switch token := token.(type) {
		case json.Delim:
			if token == '{' || token == '[' {
				path, kinds = append(path, key), append(kinds, token)
				key, isKey = "", token == '{'
				continue
			}
			path, kinds = path[:len(path)-1], kinds[:len(kinds)-1]
		case string:
			if isKey {
				key, isKey = token, false
				continue
			}
		case json.Number:
			if n, err := token.Int64(); err == nil && len(path) == 2 && path[1] == "payload" {
				d.peeked(key, n)
			}
		}
		key, isKey = "", len(kinds) > 0 && kinds[len(kinds)-1] == '{'
	}
}

func (d *Dispatch) peeked(key string, n int64) {
	switch key {
	case "execution_id":
		d.ExecutionID = n
	case "worker_id":
		d.WorkerID = n
	case "attempt":
		d.Attempt = int32(min(max(n, 0), 1<<31-1))
	}
}
