package demo

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/attune-go/attune/core/catalog"
	"github.com/attune-go/attune/core/submit"
	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/core/triage"
)

// packs holds the pack of the demo as a person would write it.
//
//go:embed packs
var packs embed.FS

// releaseFiles are the files that a bad release of the pack ops replaces.
//
//go:embed release
var releaseFiles embed.FS

//go:embed shop.sql
var shopSQL string

//go:embed questions.sql
var questionsSQL string

// orderEvery is the time between two orders of the shop.
const orderEvery = 900 * time.Millisecond

// writePacks writes the packs into a folder, from which the workers run them.
func (d *Demo) writePacks() error {
	folder := d.packsDir()
	err := fs.WalkDir(packs, "packs", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		path := filepath.Join(filepath.Dir(folder), filepath.FromSlash(name))
		if entry.IsDir() {
			return os.MkdirAll(path, 0o750)
		}
		content, err := packs.ReadFile(name)
		if err != nil {
			return err
		}
		return place(path, content)
	})
	if err != nil {
		return fmt.Errorf("write the demo's packs: %w", err)
	}
	return nil
}

// place writes a file as a whole, unless it has the content already: a worker may be
// reading it.
func place(path string, content []byte) error {
	if now, err := os.ReadFile(path); err == nil && bytes.Equal(now, content) {
		return nil
	}
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// openShop writes and applies the packs.
func (d *Demo) openShop(ctx context.Context) error {
	if err := d.writePacks(); err != nil {
		return err
	}
	files, err := catalog.Read([]string{d.packsDir()}, nil)
	if err != nil {
		return fmt.Errorf("read the demo's pack: %w", err)
	}
	_, err = catalog.New(d.store, nil).Apply(ctx, catalog.Request{
		Set: files.Set, Policies: files.Policies, Mistakes: files.Mistakes, Actor: "demo", Source: "attune-demo",
	})
	if err != nil {
		return fmt.Errorf("apply the demo's pack: %w", err)
	}
	if err := d.store.Pool().QueryRow(ctx, "SELECT coalesce(max(id), 0) FROM event").Scan(&d.beforeEvent); err != nil {
		return fmt.Errorf("look for the newest event: %w", err)
	}
	return nil
}

// packsDir is the folder of the demo's packs.
func (d *Demo) packsDir() string { return filepath.Join(d.stack.Dir(), "demo", "packs") }

// order is the payload of one event of the shop. Every sixth order is so large that
// a person is asked; every fourth customer is a good one.
func order(n int) map[string]any {
	items := make([]string, n%4+1)
	for i := range items {
		items[i] = []string{"tea", "cup", "pot", "spoon"}[(n+i)%4]
	}
	amount := 20 + n*13%300
	if n%6 == 2 {
		amount += 900
	}
	customer := []string{"ada", "grace-vip", "edsger", "barbara"}[n%4]
	country := []string{"france", "japan", "iceland"}[n%3]
	return map[string]any{"order": n, "customer": customer, "amount": amount, "items": items, "country": country}
}

// orders emits an event for every order until the context ends. Orders that could not be
// placed are placed as soon as that is possible again.
func (d *Demo) orders(ctx context.Context) {
	requests := submit.New(d.store, d.relay)
	n := 1
	for due := 1; supervise.Sleep(ctx, orderEvery); due++ {
		for n <= due {
			placed, err := d.placeOrder(ctx, requests, n)
			if err != nil && ctx.Err() == nil {
				d.logger.WarnContext(ctx, "An order could not be placed", "error", err)
			}
			if !placed {
				break
			}
			n++
		}
	}
}

// placeOrder emits the event of one order, unless orders are held.
func (d *Demo) placeOrder(ctx context.Context, requests *submit.Submitter, n int) (placed bool, err error) {
	d.placing.Lock()
	defer d.placing.Unlock()
	if d.ordersHeld {
		return false, nil
	}
	payload, err := json.Marshal(order(n))
	if err == nil {
		_, err = requests.EmitEvent(ctx, submit.Event{TriggerRef: "shop.order_placed", Payload: payload})
	}
	return err == nil, err
}

// holdOrders has the shop place no orders, or place them again. No order is being placed
// when it returns.
func (d *Demo) holdOrders(held bool) {
	d.placing.Lock()
	defer d.placing.Unlock()
	d.ordersHeld = held
}

// runShop places orders until show ends, and answers questions until the returned
// function is called: some are asked after the last order.
func (d *Demo) runShop(ctx, show context.Context) (stop func()) {
	answering, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	wg.Go(func() { d.orders(show) })
	wg.Go(func() { d.answers(answering, show) })
	return func() {
		cancel()
		wg.Wait()
	}
}

// answers answers the questions of the shop after a while, in place of a person,
// until the context ends; at once after the show.
func (d *Demo) answers(ctx, show context.Context) {
	desk := triage.New(triage.Config{Actor: "demo", Source: "attune-demo"}, d.store, d.relay)
	for supervise.Sleep(ctx, time.Second) {
		after := d.cfg.AnswerAfter
		if show.Err() != nil {
			after = 0 // the person has quit
		}
		var ids []int64
		if err := d.store.Pool().QueryRow(ctx, questionsSQL, d.before, after).Scan(&ids); err != nil {
			d.logger.WarnContext(ctx, "The questions could not be read", "error", err)
			continue
		}
		for _, id := range ids {
			response := json.RawMessage(`{"approved": true}`)
			if _, err := desk.Answer(ctx,
				triage.AnswerOrder{Inquiry: id, Response: response, Note: "the demo"}); err != nil {
				d.logger.WarnContext(ctx, "A question could not be answered", "inquiry", id, "error", err)
			}
		}
	}
}

// shop is what has become of the orders.
type shop struct {
	Events, Unmet           int64
	Live, Completed, Failed int64 // workflows
	Open, Answered          int64 // questions
}

// done reports whether nothing more follows from any order.
func (s shop) done() bool { return s.Unmet == 0 && s.Live == 0 && s.Open == 0 }

func (d *Demo) countShop(ctx context.Context) (s shop, err error) {
	err = d.store.Pool().QueryRow(ctx, shopSQL, d.beforeEvent, d.before).Scan(
		&s.Events, &s.Unmet, &s.Live, &s.Completed, &s.Failed, &s.Open, &s.Answered)
	if err != nil {
		return s, fmt.Errorf("count what became of the orders: %w", err)
	}
	return s, nil
}
