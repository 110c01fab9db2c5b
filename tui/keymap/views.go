package keymap

// Trait is something that a view supports. Keys work in views with their trait.
type Trait uint32

// The traits.
const (
	Opens          Trait = 1 << iota // a row can be opened
	Acts                             // rows have acts
	Marks                            // rows can be marked
	Tabled                           // columns can be chosen
	Sorts                            // the order can be changed
	Troubles                         // there is a problems-only mode
	Previews                         // the list has a preview
	Panes                            // there is more than one pane
	Folds                            // something can be folded
	Sided                            // columns can be scrolled
	Filters                          // rows can be filtered or searched
	Searches                         // matches can be stepped through
	Documents                        // a document is shown
	Relates                          // a row has relations
	Treed                            // a row may be part of a tree of executions
	Whys                             // an explanation can be opened
	Retries                          // an execution can be retried
	HasDeadLetters                   // dead letters are shown
	Quiets                           // alerts can be acknowledged or muted
)

// listed are the traits of every list.
const listed = Opens | Marks | Tabled | Sided | Filters

// View declares a view. Package app makes it.
type View struct {
	Scope Scope
	// Turn is the action with a digit that opens the view, None if only views and commands open it. Help makes it a
	// command and describes it. Tab and Short are its names in the line of views.
	Turn             Action
	Digit            string
	Help, Tab, Short string
	Has              Trait
	// One is true if the view shows one thing, which needs a name.
	One bool
	// Hints are its important keys, most useful first. The last ones replace acts while acting is disabled.
	Hints []Hint
}

// Hint describes a key in one view.
type Hint struct {
	Action Action
	Text   string
}

// Views are all views, those with a digit first.
var Views = []View{
	{
		Scope: InOverview, Turn: Overview, Digit: "1", Help: "overview", Tab: "Overview", Short: "Ovw",
		Has:   Opens | Panes | Treed,
		Hints: []Hint{{Open, "opens the row"}, {NextPane, "next section"}, {Queues, "queues (1–9: views)"}},
	},
	{
		Scope: InQueues, Turn: Queues, Digit: "2", Help: "queues", Tab: "Queues", Short: "Que",
		Has: listed | Acts | Sorts | Troubles | Previews | Relates,
		Hints: []Hint{
			{Open, "opens the queue"}, {Act, "pauses or limits it"}, {Problems, "only problems"}, {Filter, "filters"},
		},
	},
	{
		Scope: InExecutions, Turn: Executions, Digit: "3", Help: "executions", Tab: "Executions", Short: "Exec",
		Has: listed | Acts | Sorts | Troubles | Previews | Relates | Treed | Whys | Retries,
		Hints: []Hint{
			{Open, "opens the execution"}, {Problems, "only problems"}, {Requeue, "repeats it"}, {Filter, "filters"},
		},
	},
	{
		Scope: InWorkers, Turn: Workers, Digit: "4", Help: "workers", Tab: "Workers", Short: "Work",
		Has: listed | Acts | Sorts | Troubles | Previews | Relates,
		Hints: []Hint{
			{Open, "opens the worker"}, {Act, "cordons or drains it"}, {Problems, "only problems"}, {Filter, "filters"},
		},
	},
	{
		Scope: InDeadLetters, Turn: DeadLetters, Digit: "5", Help: "dead letters", Tab: "DLQ", Short: "DLQ",
		Has: listed | Acts | Sorts | Troubles | Previews | Panes | Relates | Treed | HasDeadLetters,
		Hints: []Hint{
			{Open, "opens the message"}, {Requeue, "requeues it"}, {NextPane, "groups"}, {Filter, "filters"},
		},
	},
	{
		Scope: InWorkflows, Turn: Workflows, Digit: "6", Help: "workflows", Tab: "Workflows", Short: "Flow",
		Has:   listed | Acts | Sorts | Troubles | Previews | Panes | Folds | Relates | Treed | Whys | Retries,
		Hints: []Hint{{NextPane, "its tasks"}, {Why, "why it waits"}, {Open, "opens it"}},
	},
	{
		Scope: InAlerts, Turn: Alerts, Digit: "7", Help: "alerts", Tab: "Alerts", Short: "Alrt",
		Has:   listed | Sorts | Troubles | Previews | Panes | Relates | Treed | Quiets,
		Hints: []Hint{{Open, "what it is about"}, {Acknowledge, "acknowledges"}, {Mute, "mutes for 15m"}},
	},
	{
		Scope: InInquiries, Turn: Inquiries, Digit: "8", Help: "inquiries", Tab: "Inquiries", Short: "Ask",
		Has: listed | Acts | Sorts | Troubles | Previews | Relates | Treed,
		Hints: []Hint{
			{Act, "answers it"}, {Open, "opens what asks"}, {Problems, "only problems"}, {Filter, "filters"},
		},
	},
	{
		Scope: InBroker, Turn: Broker, Digit: "9", Help: "broker: its queues and how they are wired", Tab: "Broker",
		Short: "Mq",
		Has:   listed | Sorts | Troubles | Previews | Relates,
		Hints: []Hint{{Open, "what it belongs to"}, {Problems, "only problems"}, {Filter, "filters"}},
	},
	{
		Scope: InQueue, One: true,
		Has: Opens | Acts | Previews | Panes | Filters | Searches | Relates | Treed | Whys,
		Hints: []Hint{
			{Open, "opens the execution"}, {Act, "acts on it"}, {Back, "back"}, {Filter, "searches"},
		},
	},
	{
		Scope: InExecution, One: true,
		Has:   Acts | Panes | Folds | Sided | Filters | Searches | Documents | Relates | Treed | Whys | Retries,
		Hints: []Hint{{Why, "why it waits"}, {Related, "related things"}, {Back, "back"}},
	},
	{
		Scope: InWorker, One: true,
		Has: Opens | Acts | Panes | Filters | Searches | Relates | Treed,
		Hints: []Hint{
			{NextPane, "next section"}, {Act, "acts on it"}, {Back, "back"}, {Filter, "searches"},
		},
	},
	{
		Scope: InDeadLetter, One: true,
		Has: Opens | Acts | Marks | Panes | Folds | Sided | Filters | Searches | Documents | Relates | Treed |
			HasDeadLetters,
		Hints: []Hint{
			{Requeue, "requeues it"},
			{Discard, "discards it"},
			{Back, "back"},
			{NextPane, "next section"},
			{Filter, "searches"},
		},
	},
	{Scope: InXray, One: true, Has: Opens | Acts | Folds | Sided | Relates},
	{Scope: InLog, Has: listed},
	{Scope: InReplicas, Help: "the engine's replicas", Has: listed | Sorts | Troubles},
}

// ViewOf returns a view, or nil.
func ViewOf(scope Scope) *View {
	for i := range Views {
		if Views[i].Scope == scope {
			return &Views[i]
		}
	}
	return nil
}

// with lists the views with one of the traits.
func with(traits Trait) []Scope {
	var scopes []Scope
	for i := range Views {
		if Views[i].Has&traits != 0 {
			scopes = append(scopes, Views[i].Scope)
		}
	}
	return scopes
}

// numbered are the keys that open views.
func numbered() []Binding {
	var keys []Binding
	for _, v := range Views {
		if v.Digit != "" {
			keys = append(keys,
				Binding{
					Action: v.Turn, Keys: []string{v.Digit}, Show: v.Digit, Help: v.Help, Group: GroupMove,
					Scopes: []Scope{Everywhere},
				})
		}
	}
	return keys
}
