package main

import "laneway/shared/model/profile"

// Names of the environment variables that the functions read: the contract
// between this app and functions/*/main.go. Nothing secret is ever in them.
const (
	EnvStack          = "LANEWAY_STACK"              // name of the stack; the dimension of its metrics
	EnvTablePrefix    = "LANEWAY_TABLE_PREFIX"       // a table's deployed name is this and its name in the schema
	EnvQueueMain      = "LANEWAY_QUEUE_MAIN_URL"     // FIFO lane
	EnvQueueCron      = "LANEWAY_QUEUE_CRON_URL"     // FIFO lane
	EnvQueueSubagent  = "LANEWAY_QUEUE_SUBAGENT_URL" // FIFO lane
	EnvTimer          = "LANEWAY_TIMER_URL"          // standard queue with delays
	EnvBlobBucket     = "LANEWAY_BLOB_BUCKET"        // name of the bucket
	EnvStageCallback  = "LANEWAY_STAGE_CALLBACK"     // https address of @connections, with the stage
	EnvModel          = "LANEWAY_MODEL"              // absent: the first provider that has a key
	EnvFallbacks      = "LANEWAY_FALLBACKS"          // absent: those of the stored configuration
	EnvReset          = "LANEWAY_SESSION_RESET"      // absent: sessions never start over by themselves
	EnvQueueRules     = "LANEWAY_QUEUE"              // absent: the defaults of queues
	EnvInbound        = "LANEWAY_INBOUND_DEBOUNCE"   // absent: texts do not wait for more
	EnvStuckWarn      = "LANEWAY_STUCK_WARN_MS"      // absent: two minutes
	EnvStuckAbort     = "LANEWAY_STUCK_ABORT_MS"     // absent: six minutes
	EnvSecret         = "LANEWAY_SECRET_ARN"         // ARN of the secret; its value is in no environment
	EnvScheduleGroup  = "LANEWAY_SCHEDULE_GROUP"     // group of the stack's schedules
	EnvScheduleRole   = "LANEWAY_SCHEDULE_ROLE_ARN"  // role that a schedule takes to call its target
	EnvScheduleDLQ    = "LANEWAY_SCHEDULE_DLQ_ARN"   // where a schedule's undeliverable events go
	EnvSchedulerARN   = "LANEWAY_SCHEDULER_ARN"      // target of the schedules
	EnvLogLevel       = "LANEWAY_LOG_LEVEL"          // debug, info, warn or error
	EnvTimeoutSeconds = "LANEWAY_TIMEOUT_SECONDS"    // the function's own time limit

	// EnvFallbackSkip has the reference's name; absent: a refused fallback is asked again.
	EnvFallbackSkip = profile.SkipVariable
)
