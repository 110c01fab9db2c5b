package message

import (
	"bytes"
	"encoding/json"
)

// maxPeekDepth bounds the memory of PeekDispatch: each level takes many times its byte in the message.
const maxPeekDepth = 100_000

// PeekDispatch reads the subject of a dispatch from a body that Decode refuses: one that is too
// large, nested too deeply, or invalid after these fields. It reports whether it found execution
// and worker. It never sets Config.
func PeekDispatch(body []byte) (Dispatch, bool) {
	var d Dispatch
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	// path holds the member names of the open objects; lists have an empty one.
	var path []string
	var kinds []json.Delim
	key, isKey := "", false
	for {
		token, err := decoder.Token()
		if err != nil { // the end, or invalid JSON
			return d, d.ExecutionID > 0 && d.WorkerID > 0
		}
		switch token := token.(type) {
		case json.Delim:
			if len(path) > maxPeekDepth {
				return d, d.ExecutionID > 0 && d.WorkerID > 0
			}
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
