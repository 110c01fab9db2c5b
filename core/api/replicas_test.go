package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/lab/testkit/apitest"
)

func TestReplicasAreServedWithTheirProblems(t *testing.T) {
	st := testkit.Store(t)
	apitest.Fill(t, st)
	handler := handlerOver(t, st)
	code, _, body := ask(t, handler, "/api/v1/replicas")
	require.Equal(t, http.StatusOK, code)
	var answer struct {
		Data struct {
			Total int `json:"total"`
			Well  int `json:"well"`
			List  []struct {
				Host     string   `json:"host"`
				State    string   `json:"state"`
				Problems []string `json:"problems"`
			} `json:"list"`
		} `json:"data"`
	}
	require.NoError(t, json.Unmarshal(body, &answer))
	require.Equal(t, 1, answer.Data.Total)
	require.Zero(t, answer.Data.Well)
	require.Equal(t, "h", answer.Data.List[0].Host)
	problems := strings.Join(answer.Data.List[0].Problems, "\n") // on a slow machine it is late as well
	require.Contains(t, problems, "low on memory")

	code, _, body = ask(t, handler, "/api/v1/replicas?late=true")
	require.Equal(t, http.StatusBadRequest, code)
	require.Contains(t, string(body), "there is no query parameter")
}
