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

// packs holds the packs of the demo.
//
//go:embed packs
var packs embed.FS

// releaseFiles are the files that a bad release of the pack ops replaces.
//
//go:embed release
var releaseFiles embed.FS

// orderEvery is the time between two orders of the shop.
const orderEvery = 900 * time.Millisecond

// writePacks writes the packs into the workers' folder.
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
		return replaceFile(path, content)
	})
	if err != nil {
		return fmt.Errorf("write the demo's packs: %w", err)
	}
	return nil
}

// replaceFile replaces a file atomically, because a worker may be reading it, and only if the content
// differs.
func replaceFile(path string, content []byte) error {
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
	if err := d.applyPacks(ctx, d.packsDir(), catalog.Request{Actor: "demo"}); err != nil {
		return err
	}
	return d.queryRow(ctx, "find the newest event", "SELECT coalesce(max(id), 0) FROM event", nil, &d.beforeEvent)
}

// applyPacks applies the packs in a folder.
func (d *Demo) applyPacks(ctx context.Context, folder string, request catalog.Request) error {
	files, err := catalog.Read([]string{folder}, nil)
	if err != nil {
		return fmt.Errorf("read the packs in %s: %w", folder, err)
	}
	request.Set, request.Mistakes = files.Set, files.Mistakes
	request.Source = "attune-demo"
	if _, err := catalog.New(d.store, nil).Apply(ctx, request); err != nil {
		return fmt.Errorf("apply the packs in %s: %w", folder, err)
	}
	return nil
}

// packsDir is the folder of the demo's packs.
func (d *Demo) packsDir() string { return filepath.Join(d.stack.Dir(), "demo", "packs") }

// order returns the payload of one event of the shop. Every sixth order is large and opens an inquiry;
// every fourth customer is a VIP.
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

// orders emits an event for every order until the context ends. It retries failed orders.
func (d *Demo) orders(ctx context.Context) {
	requests := submit.New(d.store, d.relay)
	n := 1
	for due := 1; supervise.Sleep(ctx, orderEvery); due++ {
		for n <= due {
			placed, err := d.placeOrder(ctx, requests, n)
			if err != nil && ctx.Err() == nil {
				d.logger.WarnContext(ctx, "Failed to place an order", "error", err)
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

// holdOrders stops or resumes the placing of orders. When it returns, no order is in progress.
func (d *Demo) holdOrders(held bool) {
	d.placing.Lock()
	defer d.placing.Unlock()
	d.ordersHeld = held
}

// runShop places orders until show ends, and answers questions until stop is called: the last orders
// open inquiries later.
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

// answers answers the shop's questions after Config.AnswerAfter in place of the user, and at once after
// the show, until the context ends.
func (d *Demo) answers(ctx, show context.Context) {
	for supervise.Sleep(ctx, time.Second) {
		after := d.cfg.AnswerAfter
		if show.Err() != nil {
			after = 0 // the user has quit
		}
		var ids []int64
		err := d.queryRow(ctx, "read the questions", sql.Questions, args{d.before, after}, &ids)
		if err != nil {
			d.logger.WarnContext(ctx, "Failed to read the questions", "error", err)
			continue
		}
		for _, id := range ids {
			response := json.RawMessage(`{"approved": true}`)
			answer := triage.AnswerRequest{Inquiry: id, Response: response, Note: "the demo"}
			if _, err := d.operator("demo").Answer(ctx, answer); err != nil {
				d.logger.WarnContext(ctx, "Failed to answer a question", "inquiry_id", id, "error", err)
			}
		}
	}
}

// shop counts the results of the orders.
type shop struct {
	Events, Unmet           int64
	Live, Completed, Failed int64 // workflows
	Open, Answered          int64 // questions
}

// done reports whether every order is processed.
func (s shop) done() bool { return s.Unmet == 0 && s.Live == 0 && s.Open == 0 }

func (d *Demo) countShop(ctx context.Context) (s shop, err error) {
	err = d.queryRow(ctx, "count the results of the orders", sql.Shop, args{d.beforeEvent, d.before},
		&s.Events, &s.Unmet, &s.Live, &s.Completed, &s.Failed, &s.Open, &s.Answered)
	return s, err
}
