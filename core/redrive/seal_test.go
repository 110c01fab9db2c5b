package redrive

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/message"
)

// keyFile writes a file that holds a key of one byte over and over.
func keyFile(t *testing.T, of byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(path, bytes.Repeat([]byte{of}, 32), 0o600))
	return path
}

func TestAKeyIsThirtyTwoBytesThatNobodyElseReads(t *testing.T) {
	t.Parallel()
	raw := bytes.Repeat([]byte{7}, 32)
	folder := t.TempDir()
	name := ""
	for i, content := range [][]byte{raw, []byte(hex.EncodeToString(raw) + "\n"), []byte(base64.StdEncoding.EncodeToString(raw) + "\n")} {
		path := filepath.Join(folder, "key"+string(rune('a'+i)))
		require.NoError(t, os.WriteFile(path, content, 0o600))
		s, err := loadSeal(path)
		require.NoError(t, err)
		require.Len(t, s.name, 8)
		if name != "" {
			require.Equal(t, name, s.name, "the same key, written otherwise")
		}
		name = s.name
	}
	none, err := loadSeal("")
	require.NoError(t, err)
	require.Nil(t, none)

	path := filepath.Join(folder, "bad")
	_, err = loadSeal(path)
	require.ErrorIs(t, err, os.ErrNotExist)
	for _, content := range []string{"", "short", string(raw) + "x", hex.EncodeToString(raw[:15])} {
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		_, err = loadSeal(path)
		require.ErrorContains(t, err, "holds no key of 32 bytes")
	}
	require.NoError(t, os.WriteFile(path, raw, 0o600))
	for _, mode := range []os.FileMode{0o640, 0o604, 0o622} {
		require.NoError(t, os.Chmod(path, mode))
		_, err = loadSeal(path)
		require.ErrorContains(t, err, "others can read the key of the spool: chmod 600 "+path)
	}
	_, err = loadSeal(folder)
	require.ErrorContains(t, err, "is no plain file")
}

// TestSealedCopiesComeBackWithTheKeyOnly: without it, and with another, nothing is
// touched, and what lies beside in plain copies comes back all the same.
func TestSealedCopiesComeBackWithTheKeyOnly(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.send(amqp.Publishing{MessageId: "plain", Body: []byte("in the open"), Headers: amqp.Table{"n": int32(1)}})
	plain := s.run(Order{Do: DoPurge})
	key := keyFile(t, 7)
	s.Desk = s.desk(func(c *Config) { c.SpoolKey = key })
	s.send(amqp.Publishing{MessageId: "secret-id", Body: []byte("password=hunter2"), Headers: amqp.Table{"n": int32(2)}})
	p, err := s.Plan(s.ctx, Order{Do: DoPurge})
	require.NoError(t, err)
	require.True(t, p.Sealed)
	sealed, err := s.Run(s.ctx, p, "because", nil)
	require.NoError(t, err)
	require.True(t, sealed.Undoable)
	content, err := os.ReadFile(spoolPath(s.folder, sealed.Op))
	require.NoError(t, err)
	for _, hidden := range []string{"hunter2", base64.StdEncoding.EncodeToString([]byte("password=hunter2")), "secret-id"} {
		require.NotContains(t, string(content), hidden)
	}
	require.Contains(t, string(content), "because", "what was done is no secret")

	for text, other := range map[string]string{"no spool_key is set": "", "holds another": keyFile(t, 8), "no such file": "/nonexistent/key"} {
		desk := s.desk(func(c *Config) { c.SpoolKey = other })
		_, err = desk.Plan(s.ctx, Order{Do: DoUndo, Op: sealed.Op})
		require.ErrorContains(t, err, text)
		require.ErrorContains(t, err, "nothing was touched")
		all, err := desk.Spool()
		require.NoError(t, err)
		require.Len(t, all, 2)
		require.Contains(t, all[0].Trouble, text)
		require.Equal(t, []int{1, 0, 0}, []int{all[0].Shut, len(all[0].Letters), all[0].Undoable()})
		require.Equal(t, 1, all[1].Undoable(), "plain copies need no key")
	}
	again, err := os.ReadFile(spoolPath(s.folder, sealed.Op))
	require.NoError(t, err)
	require.Equal(t, content, again)
	require.Zero(t, s.ready(message.QueueDeadLetter))

	require.Equal(t, 1, s.run(Order{Do: DoUndo, Op: plain.Op}).Done)
	require.Equal(t, 1, s.run(Order{Do: DoUndo, Op: sealed.Op}).Done)
	s.becomes(message.QueueDeadLetter, 2)
	back := s.drain(message.QueueDeadLetter)
	require.Equal(t, []string{"in the open", "password=hunter2"}, []string{string(back[0].Body), string(back[1].Body)})
	require.Equal(t, int32(2), back[1].Headers["n"], "headers keep their types")
}

// TestASealedCopyIsBoundToItsPlace: a letter that was altered, or moved from another
// operation, is refused, and the others are still listed.
func TestASealedCopyIsBoundToItsPlace(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil, func(c *Config) { c.SpoolKey = keyFile(t, 7) })
	ops := []string{}
	for _, body := range []string{"one", "two"} {
		s.send(amqp.Publishing{Body: []byte(body)})
		ops = append(ops, s.run(Order{Do: DoPurge}).Op)
	}
	lines := func(op string) [][]byte {
		raw, err := os.ReadFile(spoolPath(s.folder, op))
		require.NoError(t, err)
		return bytes.SplitAfter(raw, []byte("\n"))
	}
	first, second := lines(ops[0]), lines(ops[1])
	for name, mixed := range map[string][][]byte{
		"moved":   {second[0], first[1], second[2]},
		"altered": {second[0], bytes.Replace(second[1], []byte(`"sealed":"`), []byte(`"sealed":"AAAA`), 1)},
		"cut":     {second[0], []byte(`{"n":1,"sealed":"AAAA","state":"spooled"}`)},
		"plain":   {second[0], []byte(`{"n":1,"letter":{"queue":"q","body":"AAAA"},"state":"spooled"}`)},
		"unnamed": {bytes.ReplaceAll(second[0], []byte(`"key"`), []byte(`"kex"`)), second[1]},
	} {
		require.NoError(t, os.WriteFile(spoolPath(s.folder, ops[1]), bytes.Join(mixed, nil), 0o600))
		_, err := s.Plan(s.ctx, Order{Do: DoUndo, Op: ops[1]})
		require.ErrorIs(t, err, errAltered, name)
		all, err := s.Spool()
		require.NoError(t, err)
		require.Contains(t, all[0].Trouble, "altered or moved", name)
		require.Equal(t, 1, all[1].Undoable(), name)
	}
}

// TestAKeyThatCannotBeUsedRemovesNothing: a copy that nobody asked to be plain is not.
func TestAKeyThatCannotBeUsedRemovesNothing(t *testing.T) {
	t.Parallel()
	key := keyFile(t, 7)
	s := newSite(t, nil, func(c *Config) { c.SpoolKey = key })
	s.send(amqp.Publishing{Body: []byte("x")})
	p, err := s.Plan(s.ctx, Order{Do: DoPurge})
	require.NoError(t, err)
	require.NoError(t, os.Chmod(key, 0o644))
	_, err = s.Run(s.ctx, p, "", nil)
	require.ErrorContains(t, err, "others can read")
	_, err = s.Plan(s.ctx, Order{Do: DoPurge})
	require.ErrorContains(t, err, "others can read")
	require.Contains(t, s.SpoolState().Problem, "others can read")
	s.becomes(message.QueueDeadLetter, 1)
}

// TestWithTheSpoolOffNothingIsCopied: what is removed then is gone, which the plan says,
// and earlier copies can still be put back.
func TestWithTheSpoolOffNothingIsCopied(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.letters(s.expired(3)...)
	kept := s.run(Order{Do: DoDiscard, Letters: s.snapshot().Letters[:1]})
	state := s.SpoolState()
	require.True(t, state.On)
	require.Equal(t, 1, state.Operations)
	require.Positive(t, state.Bytes)
	s.SetSpool(false)
	require.False(t, s.SpoolState().On)
	p, err := s.Plan(s.ctx, Order{Do: DoDiscard, Letters: s.snapshot().Letters[:1]})
	require.NoError(t, err)
	require.True(t, p.Gone())
	r, err := s.Run(s.ctx, p, "", nil)
	require.NoError(t, err)
	require.Equal(t, 1, r.Done)
	require.False(t, r.Undoable)
	r = s.run(Order{Do: DoPurge})
	require.Equal(t, []int{1, 0}, []int{r.Done, r.After})
	require.Equal(t, 1, s.SpoolState().Operations, "no other copy was made")
	require.Equal(t, 1, s.run(Order{Do: DoUndo, Op: kept.Op}).Done)
	s.becomes(message.QueueDeadLetter, 1)

	ours := newSiteOf(t, true, nil, func(c *Config) { c.SpoolOff = true })
	ours.letters(1)
	p, err = ours.Plan(ours.ctx, Order{Do: DoPurge})
	require.NoError(t, err)
	require.True(t, p.Ledger)
	require.False(t, p.Gone(), "the ledger has the copy")
}
