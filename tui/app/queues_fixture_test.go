package app

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/screen"
)

// fakePlaces has the data of the views of one queue and of one worker.
type fakePlaces struct {
	line        *monitor.Line
	queuesPast  *monitor.QueuesPast
	worker      *monitor.WorkerDetail
	workersPast *monitor.WorkersPast
	lines       []monitor.LineAsk
	workerIDs   []int64
	pastIDs     []int64
}

func (f *fakeSource) QueueLine(ctx context.Context, ask monitor.LineAsk) (*monitor.Line, error) {
	err := f.answer(ctx, screen.FeedLine)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lines = append(f.lines, ask)
	if f.fakePlaces.line == nil {
		return nil, errors.Join(err, monitor.ErrNotFound)
	}
	l := *f.fakePlaces.line
	l.Queue, l.End = ask.Queue, ask.End
	n := min(len(l.List), int(ask.Rows))
	if ask.End {
		l.List = l.List[len(l.List)-n:]
	} else {
		l.List = l.List[:n]
	}
	return &l, err
}

func (f *fakeSource) QueuesPast(ctx context.Context, id int64) (*monitor.QueuesPast, error) {
	err := f.answer(ctx, screen.FeedQueuesPast)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pastIDs = append(f.pastIDs, id)
	return f.queuesPast, err
}

func (f *fakeSource) Worker(ctx context.Context, id int64) (*monitor.WorkerDetail, error) {
	err := f.answer(ctx, screen.FeedWorker)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.workerIDs = append(f.workerIDs, id)
	d := *f.worker
	d.ID = id
	return &d, err
}

func (f *fakeSource) WorkersPast(ctx context.Context) (*monitor.WorkersPast, error) {
	return f.workersPast, f.answer(ctx, screen.FeedWorkersPast)
}

func noPlaces(reading monitor.Reading) fakePlaces {
	return fakePlaces{
		line: &monitor.Line{Reading: reading}, queuesPast: &monitor.QueuesPast{Reading: reading},
		worker: &monitor.WorkerDetail{Reading: reading}, workersPast: &monitor.WorkersPast{Reading: reading},
	}
}

// samplePlaces are a queue of unknown length, and a worker that stopped, came back, and was then lost.
func samplePlaces(reading monitor.Reading) fakePlaces {
	p := noPlaces(reading)
	p.line.Of = 120
	for i := range int64(120) {
		w := monitor.QueuedExecution{
			ID: 884_160 + i, Place: i + 1, Lane: monitor.LaneNormal, Order: 89_621 + i, Source: "rule nightly.start",
			Since: frozen.Add(-3*time.Minute - 12*time.Second + time.Duration(i)*time.Second),
		}
		switch {
		case i < 3:
			w.Lane = monitor.LaneHigh
		case i%4 == 1:
			w.Parent, w.ParentRef, w.Task = ptr(884_050), "etl.nightly", "fetch"
		case i%4 == 2:
			w.Source = "by alice"
		case i%4 == 3:
			w.Source = "retry of 883902"
		}
		p.line.List = append(p.line.List, w)
	}
	p.worker = sampleWorkerDetail(reading)
	return p
}

func sampleWorkerDetail(reading monitor.Reading) *monitor.WorkerDetail {
	d := &monitor.WorkerDetail{Reading: reading, ID: 7, Exists: true, Recorded: true, Flaps: 1}
	for i, action := range []string{"core.http_request", "etl.load", "mail.send", "mail.send"} {
		d.Running = append(d.Running, monitor.WorkerRun{
			ID: 884_101 + 2*int64(i), ActionRef: action, Status: "running",
			Since: *ago(time.Duration(9-i) * time.Minute), Queue: action,
		})
	}
	d.Changes = []monitor.WorkerChange{
		{At: *ago(38 * time.Minute), What: "active", Flap: true},
		{At: *ago(39 * time.Minute), What: "inactive"},
		{At: *ago(2 * time.Hour), What: "cordoned: new disk"},
		{At: *ago(6 * time.Hour), What: "registered"},
	}
	d.Beats = slices.Repeat([]monitor.Beat{monitor.BeatAlive}, 60)
	d.Beats[20], d.Beats[21] = monitor.BeatSilent, monitor.BeatSilent
	for i := 56; i < 60; i++ {
		d.Beats[i] = monitor.BeatSilent
	}
	return d
}

// spoil fills every text with one that tries to break out.
func (p *fakePlaces) spoil(evil string) {
	for i := range p.line.List {
		w := &p.line.List[i]
		w.Source, w.ParentRef, w.Task, w.Lane = evil, evil, evil, evil
	}
	for i := range p.worker.Running {
		r := &p.worker.Running[i]
		r.ActionRef, r.Queue, r.Status = evil, evil, evil
	}
	for i := range p.worker.Changes {
		p.worker.Changes[i].What = evil
	}
}
