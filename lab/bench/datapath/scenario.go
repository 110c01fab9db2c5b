package datapath

import (
	"runtime"
	"slices"
	"time"

	"github.com/attune-go/attune/core/config"
)

// Design is the program that admits and promotes.
type Design string

// The measured designs.
const (
	DesignEngine Design = "engine" // the engine's batches
	DesignD1     Design = "d1"     // one execution per transaction, counted with COUNT(*)
	designFloor  Design = "floor"  // the floor program, which only Pairs measures
)

// Scenario is one measurement of a flood or of a steady pace.
type Scenario struct {
	Name       string `json:"name"`
	What       string `json:"what"`
	Design     Design `json:"design"`
	Executions int    `json:"executions"`
	Keys       int    `json:"keys"`
	Limit      int    `json:"limit"`                // of each key; 0: none
	PackLimit  int    `json:"pack_limit,omitempty"` // of all keys together
	Rate       int    `json:"rate,omitempty"`       // starts a second of all keys together
	Replicas   int    `json:"replicas"`
	Schedulers int    `json:"schedulers,omitempty"` // of a replica; 0: the engine's default
	Workers    int    `json:"workers"`
	// idle live workers that register at the start of the measurement
	Crowd      int           `json:"crowd,omitempty"`
	Batch      int           `json:"batch"`                // requests of a batch; twice as many completions
	Hold       time.Duration `json:"hold_ns,omitempty"`    // how long a worker keeps a job
	Duplicates float64       `json:"duplicates,omitempty"` // share of messages delivered twice
	Aborts     float64       `json:"aborts,omitempty"`     // share of batches aborted after their statements
	Pace       float64       `json:"pace,omitempty"`       // requests a second as a share of the floor; 0: all at once
	Delay      time.Duration `json:"delay_ns,omitempty"`   // each way between the engine and the database
	meter      *meter        // sees all statements; may be nil

	Reference string `json:"reference,omitempty"` // the same scenario of the one-at-a-time design
	Alone     string `json:"alone,omitempty"`     // the same scenario with one replica, or without the crowd
}

// The scenarios with goals.
const (
	noLimit      = "no-limit"
	keys10       = "keys-10"
	keys100      = "keys-100"
	hot          = "hot"
	slots        = "slots"
	paced        = "paced"
	crowd        = "crowd"
	crowdPaced   = "crowd-paced"
	far1         = "far-1"
	far4         = "far-4"
	farKeys1000  = "far-keys-1000"
	farKeys100   = "far-keys-100"
	farNoLimit   = "far-no-limit"
	abused       = "abuse"
	threeOf      = "-3"
	d1Of         = "d1-"
	growthName   = "growth"
	dispatchSize = 100 // requests of a batch, the engine's default
	farPrefetch  = 64  // the same of a distant replica
)

// Scenarios returns the standard measurements in the order of a round. Quick ones are shorter and fewer.
func Scenarios(quick bool) []Scenario {
	list := slices.Concat(floods(), references(), stacked(), replicas(), crowds(), abuses(), distant(),
		distantReplicas())
	if !quick {
		return append(list, // more points of the curve over the number of keys
			engineScenario("keys-1", "1 key × limit 5", 3_000, 1, 5),
			engineScenario("keys-1000", "1,000 keys × limit 5", 10_000, 1_000, 5),
			engineScenario("keys-10000", "10,000 keys × limit 5", 20_000, 10_000, 5))
	}
	list = slices.DeleteFunc(list, func(s Scenario) bool { return s.Pace > 0 || s.Name == d1Of+slots })
	for i := range list {
		list[i].Executions = max(300, list[i].Executions/10)
	}
	return list
}

func engineScenario(name, what string, executions, keys, limit int) Scenario {
	return Scenario{
		Name: name, What: what, Design: DesignEngine, Executions: executions, Keys: keys, Limit: limit,
		Replicas: 1, Workers: 1, Batch: dispatchSize,
	}
}

func floods() []Scenario {
	list := []Scenario{
		engineScenario(noLimit, "no limit, 10 actions", 20_000, 10, 0),
		engineScenario(keys10, "10 keys × limit 5", 10_000, 10, 5),
		engineScenario(keys100, "100 keys × limit 5", 10_000, 100, 5),
		engineScenario(hot, "one hot key, limit 10", 5_000, 1, 10),
		engineScenario(slots, "slots busy: limit 10, held 10 ms", 3_000, 1, 10),
		engineScenario(paced, "paced at F1 ÷ 20, no limit", 1_000, 1, 0),
	}
	for i := range list[:5] {
		list[i].Reference = d1Of + list[i].Name
	}
	list[4].Hold = 10 * time.Millisecond
	list[5].Pace = 1.0 / 20
	return list
}

// references returns the same scenarios for D1, with fewer executions: D1 is faster with a short queue.
func references() []Scenario {
	executions := map[string]int{noLimit: 2_000, keys10: 1_500, keys100: 1_500, hot: 1_000, slots: 800}
	var list []Scenario
	for _, s := range floods() {
		if s.Reference == "" {
			continue
		}
		s.Executions = executions[s.Name]
		s.Name, s.What, s.Design, s.Reference = s.Reference, "D1: "+s.What, DesignD1, ""
		s.Replicas, s.Batch = 1, 1
		list = append(list, s)
	}
	return list
}

// stacked returns scenarios with a limit over several limits.
func stacked() []Scenario {
	list := []Scenario{
		engineScenario("pack", "10 keys × limit 5, 20 of the pack", 10_000, 10, 5),
		engineScenario("rate", "10 keys, no limit, 1,000 starts/s of the pack", 3_000, 10, 0),
	}
	list[0].PackLimit = 20
	list[1].Rate = 1_000
	return list
}

// schedulers returns the number of schedulers of a replica.
func (s Scenario) schedulers() int {
	return config.Executor{Schedulers: s.Schedulers}.SchedulersOn(runtime.GOMAXPROCS(0))
}

// burst returns the number of simultaneous starts under a rate: 50 ms of it.
func (s Scenario) burst() int { return max(s.Rate/20, 1) }

func replicas() []Scenario {
	var list []Scenario
	for _, s := range floods()[:4] {
		s.Name, s.What, s.Alone, s.Reference = s.Name+threeOf, s.What+", three replicas", s.Name, ""
		s.Replicas = 3
		list = append(list, s)
	}
	return list
}

// crowds returns a flood and single executions among 1,000 live workers.
func crowds() []Scenario {
	list := floods()
	flood, single := list[0], list[5]
	flood.Name, flood.What, flood.Alone, flood.Reference = crowd, flood.What+", among 1,000 workers", noLimit, ""
	single.Name, single.What, single.Alone = crowdPaced, single.What+", among 1,000 workers", paced
	flood.Crowd, single.Crowd = 999, 999
	return []Scenario{flood, single}
}

func abuses() []Scenario {
	list := []Scenario{
		engineScenario(abused+"-keys", "abuse: 10 keys × limit 3", 5_000, 10, 3),
		engineScenario(abused+"-hot", "abuse: one hot key, limit 10", 3_000, 1, 10),
		engineScenario(abused+"-no-limit", "abuse: no limit", 5_000, 10, 0),
	}
	for i := range list {
		list[i].What += ", three replicas of four schedulers, 20 % twice, 3 % aborted, queues held by others"
		list[i].Replicas, list[i].Schedulers, list[i].Workers = 3, 4, 2
		list[i].Duplicates, list[i].Aborts = 0.2, 0.03
	}
	return list
}

// distant returns scenarios with a distant database, where a scheduler mostly waits for answers.
func distant() []Scenario {
	list := []Scenario{
		engineScenario(far1, "100 keys × limit 5, database 10 ms away, one scheduler", 3_000, 100, 5),
		engineScenario(far4, "100 keys × limit 5, database 10 ms away, four schedulers", 6_000, 100, 5),
	}
	list[0].Schedulers, list[1].Schedulers = 1, 4
	list[1].Alone = far1
	for i := range list {
		list[i].Delay = 10 * time.Millisecond
	}
	return list
}

// distantReplicas returns scenarios that show whether replicas wait for each other. One of them with one
// scheduler mostly waits for answers, so that three on the same processors may be three times as fast.
func distantReplicas() []Scenario {
	var list []Scenario
	for _, one := range []Scenario{
		engineScenario(farKeys1000, "1,000 keys × limit 5", 4_000, 1_000, 5),
		engineScenario(farKeys100, "100 keys × limit 5", 4_000, 100, 5),
		engineScenario(farNoLimit, "one action, no limit", 4_000, 1, 0),
	} {
		one.What += ", database 20 ms away, one scheduler"
		one.Schedulers, one.Batch, one.Delay = 1, farPrefetch, 20*time.Millisecond
		three := one
		three.Name, three.What, three.Alone = one.Name+threeOf, one.What+", three replicas", one.Name
		three.Replicas, three.Executions = 3, 3*one.Executions
		list = append(list, one, three)
	}
	return list
}
