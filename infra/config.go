package main

import (
	"errors"
	"fmt"
	"maps"
	"net/mail"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"laneway/shared/model/choose"
	"laneway/shared/model/profile"
	"laneway/shared/model/route"
	"laneway/shared/queue"
	"laneway/shared/queueing"
	"laneway/shared/session"
)

// Function names: the folders under functions/, the zips under dist/ and, behind
// the stack's name, the names of the deployed functions.
const (
	Gateway   = "gateway"
	Runner    = "runner"
	Notifier  = "notifier"
	Scheduler = "scheduler"
	Watchdog  = "watchdog"
)

// Functions lists them in the order in which they are shown.
func Functions() []string { return []string{Gateway, Runner, Notifier, Scheduler, Watchdog} }

// Architecture is the instruction set of the functions, in Lambda's words.
type Architecture string

// The two that Lambda has.
const (
	ARM64 Architecture = "arm64"
	X8664 Architecture = "x86_64"
)

// AlarmSet is how many alarms a stack has.
type AlarmSet string

// All of them; those that say that work is not done, whatever the reason; none.
const (
	AllAlarms AlarmSet = "all"
	FewAlarms AlarmSet = "few"
	NoAlarms  AlarmSet = "none"
)

// Size is what a function is given.
type Size struct {
	MemoryMB       int // 128 to 10240
	TimeoutSeconds int // 1 to 900, the gateway to 29
}

// Config is everything about a stack that an operator may choose. ParseConfig
// makes one from the context of the CDK app; every key has a default, so an empty
// context deploys.
type Config struct {
	Name         string // first part of every physical name
	Account      string // of the credentials; not a key: where it is unknown, the template works in any
	Region       string // empty: that of the credentials
	Stage        string // last part of the WebSocket address
	Architecture Architecture
	Lanes        map[queue.Lane]int // most runs at once, by lane
	Timers       int                // most notifier invocations at once
	Sizes        map[string]Size    // by function
	LogDays      int                // how long logs are kept
	UploadDays   int                // how long an upload that nobody named is kept
	ConnectRate  int                // new connections a second; the burst is twice that
	AlarmMail    string             // empty: alarms reach the topic only
	Alarms       AlarmSet           // which alarms there are: each costs money
	Retain       bool               // keep the data when the stack goes, and guard it against deletion
	Emulator     bool               // deploy with the caller's own keys, to an endpoint that stands in for AWS
	TwoWay       bool               // replies go out as route responses; false for an endpoint that knows no such resource
	Model        string             // as in LANEWAY_MODEL; empty: the first provider that has a key
	Fallbacks    string             // as in LANEWAY_FALLBACKS; empty: those of the stored configuration
	SessionReset string             // as in LANEWAY_SESSION_RESET; empty: never
	Queue        string             // as in LANEWAY_QUEUE; empty: the defaults
	Inbound      string             // as in LANEWAY_INBOUND_DEBOUNCE; empty: texts do not wait
	FallbackSkip string             // as in OPENCLAW_FALLBACK_SKIP_TTL_MS; empty: not at all
	StuckWarn    int                // seconds for which a session may stand still untold; 0: the default
	StuckAbort   int                // seconds after which a run without a sign of life is ended; 0: the default
	LogLevel     string             // debug, info, warn or error
	Assets       string             // folder of <GOARCH>/<function>.zip, from where the app runs
}

// prefix marks the context keys that are ours; all others belong to CDK.
const prefix = "laneway."

// ErrConfig is the class of every error of ParseConfig.
var ErrConfig = errors.New("config")

// logDays are the only retentions that CloudWatch Logs takes.
var logDays = []int{1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653}

// Patterns. The name is short because it stands in a bucket's name beside account
// and region, which S3 caps at 63 characters.
var (
	namePattern     = regexp.MustCompile(`^[a-z][a-z0-9-]{0,18}[a-z0-9]$`)
	regionPattern   = regexp.MustCompile(`^[a-z]{2}(-[a-z]+)+-[0-9]$`)
	stagePattern    = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	modelPattern    = regexp.MustCompile(`^([a-z0-9-]+/)?[A-Za-z0-9._:/-]{1,200}$`) // a part of an ARN
	fallbackPattern = regexp.MustCompile(`^[a-z0-9-]+/[A-Za-z0-9._:/-]{1,200}$`)
)

// defaults is the configuration of an empty context.
func defaults() Config {
	c := Config{
		Name: "laneway", Stage: "live", Architecture: ARM64, Timers: 16,
		Lanes: map[queue.Lane]int{},
		Sizes: map[string]Size{
			Gateway:   {MemoryMB: 512, TimeoutSeconds: 29},
			Runner:    {MemoryMB: 512, TimeoutSeconds: 900},
			Notifier:  {MemoryMB: 256, TimeoutSeconds: 30},
			Scheduler: {MemoryMB: 256, TimeoutSeconds: 30},
			Watchdog:  {MemoryMB: 256, TimeoutSeconds: 60},
		},
		LogDays: 30, UploadDays: 7, ConnectRate: 50, Retain: true, Alarms: AllAlarms, TwoWay: true, LogLevel: "info", Assets: "dist",
	}
	for _, d := range queue.Definitions() {
		c.Lanes[d.Lane] = d.Concurrency
	}
	return c
}

// ParseConfig reads the keys that begin with "laneway." out of a context. Values
// are strings, numbers or booleans, as cdk.json or the flag -c give them. A key
// that is not known is an error, because a misspelt one would deploy a stack that
// nobody asked for. All mistakes are reported at once.
func ParseConfig(context map[string]any) (Config, error) {
	c := defaults()
	keys := c.keys()
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(context)) {
		key, ours := strings.CutPrefix(name, prefix)
		if !ours {
			continue
		}
		set, known := keys[key]
		if !known {
			errs = append(errs, fmt.Errorf("%w: %s is not a key; there are %s", ErrConfig, name, strings.Join(slices.Sorted(maps.Keys(keys)), ", ")))
			continue
		}
		text, err := scalar(context[name])
		if err == nil {
			err = set(text)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%w: %s: %w", ErrConfig, name, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return Config{}, err
	}
	return c, nil
}

// keys maps each key to what reads its value into c.
func (c *Config) keys() map[string]func(string) error {
	keys := map[string]func(string) error{
		"name":             pattern(&c.Name, namePattern, "2 to 20 lower-case letters, digits and inner dashes"),
		"region":           optional(pattern(&c.Region, regionPattern, "a region such as eu-central-1, or empty")),
		"stage":            pattern(&c.Stage, stagePattern, "1 to 64 letters, digits, dashes and underscores"),
		"architecture":     choice(func(v string) { c.Architecture = Architecture(v) }, string(ARM64), string(X8664)),
		"timers":           number(&c.Timers, 2, 1000),
		"log.days":         logRetention(&c.LogDays),
		"upload.days":      number(&c.UploadDays, 1, 365),
		"connect.rate":     number(&c.ConnectRate, 1, 10000),
		"alarm.mail":       optional(address(&c.AlarmMail)),
		"alarms":           choice(func(v string) { c.Alarms = AlarmSet(v) }, string(AllAlarms), string(FewAlarms), string(NoAlarms)),
		"removal":          choice(func(v string) { c.Retain = v == "retain" }, "retain", "destroy"),
		"emulator":         choice(func(v string) { c.Emulator = v == "true" }, "true", "false"),
		"two.way":          choice(func(v string) { c.TwoWay = v == "true" }, "true", "false"),
		"model":            optional(read(&c.Model, model)),
		"fallbacks":        optional(read(&c.Fallbacks, fallbacks)),
		"session.reset":    read(&c.SessionReset, session.ParseReset),
		"queue":            read(&c.Queue, queueing.Parse),
		"inbound.debounce": read(&c.Inbound, queueing.ParseInbound),
		"fallback.skip":    read(&c.FallbackSkip, profile.ParseSkipTTL),
		"stuck.warn":       number(&c.StuckWarn, 0, 86400),
		"stuck.abort":      number(&c.StuckAbort, 0, 86400),
		"assets":           pattern(&c.Assets, regexp.MustCompile(`.`), "a folder"),
		"log.level":        choice(func(v string) { c.LogLevel = v }, "debug", "info", "warn", "error"),
	}
	for lane := range c.Lanes {
		// Lambda takes 2 to 1000 for the concurrency of a mapping.
		keys["lane."+string(lane)] = func(v string) error {
			n, err := between(v, 2, 1000)
			c.Lanes[lane] = n
			return err
		}
	}
	for name := range c.Sizes {
		longest := 900
		if name == Gateway {
			longest = 29 // API Gateway gives up on an integration after that
		}
		keys[name+".memory"] = func(v string) error { return c.resize(name, v, 128, 10240, true) }
		keys[name+".timeout"] = func(v string) error { return c.resize(name, v, 1, longest, false) }
	}
	return keys
}

// resize sets the memory or else the time limit of a function.
func (c *Config) resize(function, v string, low, high int, memory bool) error {
	n, err := between(v, low, high)
	size := c.Sizes[function]
	if memory {
		size.MemoryMB = n
	} else {
		size.TimeoutSeconds = n
	}
	c.Sizes[function] = size
	return err
}

// scalar is the text of a context value.
func scalar(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case bool:
		return strconv.FormatBool(v), nil
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), nil
	case int:
		return strconv.Itoa(v), nil
	}
	return "", fmt.Errorf("a string, number or boolean is wanted, not %T", v)
}

func between(v string, low, high int) (int, error) {
	n, err := strconv.Atoi(v)
	if err != nil || n < low || n > high {
		return 0, fmt.Errorf("%q is not a whole number from %d to %d", v, low, high)
	}
	return n, nil
}

func number(to *int, low, high int) func(string) error {
	return func(v string) (err error) {
		*to, err = between(v, low, high)
		return err
	}
}

func logRetention(to *int) func(string) error {
	return func(v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || !slices.Contains(logDays, n) {
			return fmt.Errorf("%q is not one of %v", v, logDays)
		}
		*to = n
		return nil
	}
}

func pattern(to *string, want *regexp.Regexp, words string) func(string) error {
	return func(v string) error {
		if !want.MatchString(v) {
			return fmt.Errorf("%q is not %s", v, words)
		}
		*to = v
		return nil
	}
}

// read keeps a value that the functions' own parser takes: what it refuses would stop
// them at their start.
func read[T any](to *string, parse func(string) (T, error)) func(string) error {
	return func(v string) error {
		_, err := parse(v)
		if err == nil {
			*to = v
		}
		return err
	}
}

// model reads LANEWAY_MODEL as far as it can be told without the stored configuration.
func model(v string) (choose.Ref, error) {
	if !modelPattern.MatchString(v) {
		return choose.Ref{}, fmt.Errorf("%q is not demo, or <anthropic|openai|bedrock>/<model id>, or empty", v)
	}
	return choose.Named(v)
}

// fallbacks reads LANEWAY_FALLBACKS likewise: which providers there are is known to the
// stored configuration.
func fallbacks(v string) ([]string, error) {
	list := route.SplitList(v)
	for _, ref := range list {
		if !fallbackPattern.MatchString(ref) {
			return nil, fmt.Errorf("%q is not <provider>/<model id>; want some, by commas, or none, or empty", ref)
		}
	}
	return list, nil
}

func address(to *string) func(string) error {
	return func(v string) error {
		a, err := mail.ParseAddress(v)
		if err != nil || a.Address != v {
			return fmt.Errorf("%q is not a mail address", v)
		}
		*to = v
		return nil
	}
}

func choice(set func(string), values ...string) func(string) error {
	return func(v string) error {
		if !slices.Contains(values, v) {
			return fmt.Errorf("%q is not one of %s", v, strings.Join(values, ", "))
		}
		set(v)
		return nil
	}
}

func optional(set func(string) error) func(string) error {
	return func(v string) error {
		if v == "" {
			return nil
		}
		return set(v)
	}
}
