package keymap

// Trait is something that can be done in a view, so that its keys work there.
type Trait uint32

// The traits.
const (
	Opens     Trait = 1 << iota // a row is opened
	Acts                        // rows can be acted upon
	Marks                       // rows can be marked
	Tabled                      // there is a table whose columns can be chosen
	Sorts                       // rows can be put in another order
	Troubles                    // only problems can be shown
	Previews                    // the row under the cursor is told of beside the list
	Panes                       // there is more than one pane
	Folds                       // something can be folded
	Sided                       // something is to the left and the right
	Filters                     // rows can be filtered, or a document searched
	Searches                    // what is looked for is stepped through
	Documents                   // a document is shown
	Relates                     // what is shown has to do with others
	Treed                       // what is shown may stand in a tree of executions
	Whys                        // it is explained why something waits
	Retries                     // an execution can be retried
	Letters                     // dead letters are shown
	Quiets                      // alerts can be acknowledged or muted
)

// listed are the traits of a list.
const listed = Opens | Marks | Tabled | Sided | Filters

// View is a view of the dashboard. It is declared here, and made in package app.
type View struct {
	Scope Scope
	// Turn turns to it from everywhere, with a digit; none for the others, which are opened
	// from views, or as a command by their name where there is Help. That says what the view
	// is, Tab and Short name it in the line of views.
	Turn             Action
	Digit            string
	Help, Tab, Short string
	Has              Trait
	// One says that it shows one thing out of many, which has to be named.
	One bool
	// Hints are the keys that matter there, the most useful first. The last ones stand in for
	// keys that act where acting is not allowed.
	Hints []Hint
}

// Hint says in a few words what a key does in one view.
type Hint struct {
	Action Action
	Text   string
}

// Views are all views, those with a digit first, in its order.
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
		Has: listed | Acts | Sorts | Troubles | Previews | Relates | Treed | Retries,
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
		Has: listed | Acts | Sorts | Troubles | Previews | Panes | Relates | Treed | Letters,
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
		Has: Opens | Acts | Previews | Panes | Filters | Searches | Relates | Treed,
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
		Scope: InLetter, One: true,
		Has: Opens | Acts | Marks | Panes | Folds | Sided | Filters | Searches | Documents | Relates | Treed | Letters,
		Hints: []Hint{
			{Requeue, "requeues it"}, {Discard, "discards it"}, {Back, "back"}, {NextPane, "next section"},
			{Filter, "searches"},
		},
	},
	{Scope: InXray, One: true, Has: Opens | Acts | Folds | Sided | Relates},
	{Scope: InLog, Has: listed},
	{Scope: InReplicas, Help: "the engine's replicas", Has: listed | Sorts | Troubles},
}

// ViewOf finds a view; nil if there is none of that name.
func ViewOf(scope Scope) *View {
	for i := range Views {
		if Views[i].Scope == scope {
			return &Views[i]
		}
	}
	return nil
}

// with are the views that have one of the traits.
func with(traits Trait) []Scope {
	var scopes []Scope
	for i := range Views {
		if Views[i].Has&traits != 0 {
			scopes = append(scopes, Views[i].Scope)
		}
	}
	return scopes
}

// numbered are the keys that turn to views.
func numbered() []Binding {
	var keys []Binding
	for _, v := range Views {
		if v.Digit != "" {
			keys = append(keys,
				Binding{v.Turn, []string{v.Digit}, v.Digit, "", v.Help, GroupMove, []Scope{Everywhere}, 0, false})
		}
	}
	return keys
}
