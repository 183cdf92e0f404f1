package main

import (
	"slices"

	"laneway/shared/queue"
	"laneway/shared/table"
)

// grant is what one function may do, in words of the ports. It is the whole of its
// rights beside writing its own log; policies are made from nothing else.
type grant struct {
	reads     []string     // tables it gets and queries
	writes    []string     // tables it also puts, updates, deletes and checks
	indexes   []string     // indexes of the sessions table it queries
	sends     []queue.Lane // lanes it wakes
	receives  []queue.Lane // lanes whose mapping polls with its role
	timers    bool         // may set a timer
	fires     bool         // its mapping polls the timers
	blobs     bool         // may get, put, delete and list values
	posts     bool         // may post to connections and close them
	secret    bool         // may read the providers' keys
	schedules bool         // may keep the schedules of jobs
	models    bool         // may call the model on Bedrock, where that is configured
}

// lanes are all lanes of the schema.
func lanes() []queue.Lane {
	var all []queue.Lane
	for _, d := range queue.Definitions() {
		all = append(all, d.Lane)
	}
	return all
}

// grants says why each function needs what it has.
func grants() map[string]grant {
	return map[string]grant{
		// Answers frames: looks up the principal, accepts runs, aborts, waits,
		// lists, keeps jobs. It never sees a provider's key.
		Gateway: {
			reads:   []string{table.Config},
			writes:  []string{table.Sessions, table.Runs, table.Connections, table.Jobs, table.Audit},
			indexes: []string{table.IndexActive, table.IndexRecent},
			sends:   lanes(), timers: true, blobs: true, posts: true, schedules: true,
		},
		// Runs turns and settles them. It writes to config for the cooldown of a
		// provider's key, and to connections when one is gone.
		Runner: {
			writes: []string{table.Sessions, table.Runs, table.Connections, table.Jobs, table.Config, table.Audit},
			sends:  lanes(), receives: lanes(), timers: true, blobs: true, posts: true,
			secret: true, schedules: true, models: true,
		},
		// Fires timers: challenges, deadlines of waits, late wake-ups, what could
		// not be posted in time.
		Notifier: {
			reads:  []string{table.Config},
			writes: []string{table.Sessions, table.Runs, table.Connections, table.Jobs, table.Audit},
			sends:  lanes(), timers: true, fires: true, blobs: true, posts: true,
		},
		// Accepts the run of a slot, as the gateway accepts one of a client.
		Scheduler: {
			reads:  []string{table.Config},
			writes: []string{table.Sessions, table.Runs, table.Jobs, table.Audit},
			sends:  lanes(), timers: true, schedules: true,
		},
		// Finds sessions with work and nobody at it, and wakes them; fires jobs that
		// nobody has fired, and puts schedules that could not be put.
		Watchdog: {
			reads:   []string{table.Config},
			writes:  []string{table.Sessions, table.Runs, table.Jobs, table.Audit},
			indexes: []string{table.IndexActive},
			sends:   lanes(), timers: true, schedules: true,
		},
	}
}

// Actions by what they serve. A transaction is judged by the actions of its ops.
var (
	readActions     = []string{"dynamodb:GetItem", "dynamodb:Query"}
	writeActions    = []string{"dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem", "dynamodb:ConditionCheckItem"}
	indexActions    = []string{"dynamodb:Query"}
	sendActions     = []string{"sqs:SendMessage"}
	pollActions     = []string{"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ChangeMessageVisibility"}
	objectActions   = []string{"s3:GetObject", "s3:PutObject", "s3:DeleteObject"}
	listActions     = []string{"s3:ListBucket"} // without it an absent key is a 403, not a 404
	postActions     = []string{"execute-api:ManageConnections"}
	secretActions   = []string{"secretsmanager:GetSecretValue"}
	scheduleActions = []string{"scheduler:CreateSchedule", "scheduler:DeleteSchedule"}
	passActions     = []string{"iam:PassRole"}
	invokeActions   = []string{"lambda:InvokeFunction"}
	modelActions    = []string{"bedrock:InvokeModel", "bedrock:InvokeModelWithResponseStream"}
	logActions      = []string{"logs:CreateLogStream", "logs:PutLogEvents"}
)

// tables gives the tables of the grant and what may be done to each.
func (g grant) tables() map[string][]string {
	out := map[string][]string{}
	for _, t := range g.reads {
		out[t] = readActions
	}
	for _, t := range g.writes {
		out[t] = slices.Concat(readActions, writeActions)
	}
	return out
}
