package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// L3: a batch that waits for a later moment does not make another one miss its own.
func TestAnAlarmRingsAtEveryMoment(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, began := newAlarm(), time.Now()
		for _, after := range []time.Duration{3 * time.Second, time.Second, time.Minute, time.Second} {
			a.after(after, time.Now())
		}
		var rang []time.Duration
		for range 3 {
			<-a.C
			rang = append(rang, time.Since(began).Truncate(time.Second))
			a.fired(time.Now())
		}
		require.Equal(t, []time.Duration{time.Second, 3 * time.Second, time.Minute}, rang)
		select {
		case <-a.C:
			t.Fatal("the alarm did not ring")
		case <-time.After(time.Hour):
		}
		a.after(time.Second, time.Now())
		<-a.C
	})
}

func TestAnAlarmForgetsTheLatestWhenThereAreTooMany(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAlarm()
		for n := 2 * mostMoments; n > 0; n-- {
			a.after(time.Duration(n)*time.Second, time.Now())
		}
		require.Len(t, a.moments, mostMoments)
		began := time.Now()
		<-a.C
		require.Equal(t, time.Second, time.Since(began).Truncate(time.Second))
	})
}
