package table

// Names of the tables and indexes. Deployed names carry a prefix; code uses these.
const (
	Sessions    = "sessions"
	Runs        = "runs"
	Connections = "connections"
	Jobs        = "jobs"
	Config      = "config"
	Audit       = "audit"

	IndexActive = "active" // sessions with anything to do
	IndexRecent = "recent" // sessions by last terminal
)

// TTLAttr is the attribute that lets the store clean an item up, in seconds since
// the epoch. It only cleans: an expiry that matters is compared explicitly.
const TTLAttr = "expiresAt"

// Def is a table as data: CDK, the local edition and the tests build from it. All
// tables have the string keys "pk" and "sk", on-demand billing, point-in-time
// recovery and TTLAttr.
type Def struct {
	Name    string
	Indexes []IndexDef
}

// IndexDef is a KEYS_ONLY global index over two string attributes. An item is in
// it while it has both.
type IndexDef struct{ Name, PK, SK string }

// Definitions lists all tables.
func Definitions() []Def {
	return []Def{
		{Name: Sessions, Indexes: []IndexDef{
			{Name: IndexActive, PK: "activePk", SK: "activeSk"},
			{Name: IndexRecent, PK: "recentPk", SK: "recentSk"},
		}},
		{Name: Runs},
		{Name: Connections},
		{Name: Jobs},
		{Name: Config},
		{Name: Audit},
	}
}
