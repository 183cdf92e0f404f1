package protocol

import "encoding/json"

// ConnectParams is what a client says about itself in its first request. It is the
// one open schema: newer clients send members that we do not know.
type ConnectParams struct {
	_           struct{}      `wire:"open"`
	MinProtocol int64         `json:"minProtocol" wire:"required,min=1"`
	MaxProtocol int64         `json:"maxProtocol" wire:"required,min=1"`
	Client      ConnectClient `json:"client" wire:"required"`
	Caps        []string      `json:"caps,omitempty" wire:"max=64;min=1,max=128"`
	Role        string        `json:"role,omitempty" wire:"min=1,max=64"`
	// Scopes are those asked for. Absent means what the credential allows; an empty
	// list means none, and methods that need none still work.
	Scopes    []string       `json:"scopes,omitzero" wire:"max=64;min=1,max=128"`
	Device    *ConnectDevice `json:"device,omitempty"`
	Auth      *ConnectAuth   `json:"auth,omitempty"`
	Locale    string         `json:"locale,omitempty"`
	UserAgent string         `json:"userAgent,omitempty"`
}

// ConnectClient names the program that connects.
type ConnectClient struct {
	_            struct{} `wire:"open"`
	ID           string   `json:"id" wire:"required,min=1,max=128"`
	DisplayName  string   `json:"displayName,omitempty" wire:"max=512"`
	Version      string   `json:"version" wire:"required,min=1,max=128"`
	Platform     string   `json:"platform" wire:"required,min=1,max=128"`
	DeviceFamily string   `json:"deviceFamily,omitempty" wire:"max=128"`
	Mode         string   `json:"mode" wire:"required,min=1,max=64"`
	InstanceID   string   `json:"instanceId,omitempty" wire:"max=512"`
	TimeZone     string   `json:"timeZone,omitempty" wire:"max=64"`
}

// ConnectAuth holds the credential: the token, also when it comes as password.
type ConnectAuth struct {
	_              struct{} `wire:"open"`
	Token          string   `json:"token,omitempty"`
	Password       string   `json:"password,omitempty"`
	DeviceToken    string   `json:"deviceToken,omitempty"`
	BootstrapToken string   `json:"bootstrapToken,omitempty"`
}

// ConnectDevice is the proof that the client holds a device key; see Device.Verify.
type ConnectDevice struct {
	_         struct{} `wire:"open"`
	ID        string   `json:"id" wire:"required,min=1,max=128"`
	PublicKey string   `json:"publicKey" wire:"required,min=1,max=256"`
	Signature string   `json:"signature" wire:"required,min=1,max=256"`
	SignedAt  int64    `json:"signedAt" wire:"required,min=0"` // epoch milliseconds
	Nonce     string   `json:"nonce" wire:"required,min=1,max=512"`
}

// Values of client.mode and role that are told apart.
const (
	ModeProbe    = "probe" // may offer MinProbeVersion
	ModeWebchat  = "webchat"
	RoleOperator = "operator"
)

// Capabilities of a client (caps) that change what it is sent.
const (
	CapToolEvents    = "tool-events"           // wants the tool stream of its runs
	CapSessionScoped = "session-scoped-events" // wants events of subscribed sessions only
)

// Secret is the credential that is compared: token, password, or device token, in
// the order in which clients prefer them.
func (p *ConnectParams) Secret() string {
	if p.Auth == nil {
		return ""
	}
	for _, s := range []string{p.Auth.Token, p.Auth.Password, p.Auth.DeviceToken} {
		if s != "" {
			return s
		}
	}
	return ""
}

// Speaks says whether the client's range of versions has ours in it. A probe may
// be older.
func (p *ConnectParams) Speaks() bool {
	low := int64(Version)
	if p.Client.Mode == ModeProbe {
		low = MinProbeVersion
	}
	return p.MinProtocol <= Version && p.MaxProtocol >= low
}

// Challenge is the payload of the event connect.challenge, the first message of a
// connection.
type Challenge struct {
	Nonce string `json:"nonce"`
	TS    int64  `json:"ts"` // epoch milliseconds; clients sign it
}

// HelloOK answers connect.
type HelloOK struct {
	Type     string        `json:"type"` // "hello-ok"
	Protocol int           `json:"protocol"`
	Server   HelloServer   `json:"server"`
	Features HelloFeatures `json:"features"`
	Snapshot HelloSnapshot `json:"snapshot"`
	Auth     HelloAuth     `json:"auth"`
	Policy   HelloPolicy   `json:"policy"`
}

// HelloServer names the server and the connection.
type HelloServer struct {
	Version string `json:"version"`
	ConnID  string `json:"connId"`
}

// HelloFeatures lists what is implemented and nothing else: clients call what they
// find here.
type HelloFeatures struct {
	Methods      []string `json:"methods"`
	Events       []string `json:"events"`
	Capabilities []string `json:"capabilities"`
}

// HelloSnapshot is the state at connect; all but the session defaults is there
// because the schema wants it.
type HelloSnapshot struct {
	Presence        []json.RawMessage `json:"presence"`
	Health          struct{}          `json:"health"`
	StateVersion    StateVersion      `json:"stateVersion"`
	UptimeMs        int64             `json:"uptimeMs"`
	SessionDefaults *SessionDefaults  `json:"sessionDefaults,omitempty"`
}

// StateVersion counts the changes of presence and health, which we do not have.
type StateVersion struct {
	Presence int64 `json:"presence"`
	Health   int64 `json:"health"`
}

// SessionDefaults tells a client which session it talks to if it names none.
type SessionDefaults struct {
	DefaultAgentID string `json:"defaultAgentId"`
	MainKey        string `json:"mainKey"`
	MainSessionKey string `json:"mainSessionKey"`
	Scope          string `json:"scope,omitempty"`
}

// HelloAuth is what the connection was granted.
type HelloAuth struct {
	Role   string   `json:"role"`
	Scopes []string `json:"scopes"`
}

// HelloPolicy is the limits that a client keeps to.
type HelloPolicy struct {
	MaxPayload       int64 `json:"maxPayload"`
	MaxBufferedBytes int64 `json:"maxBufferedBytes"`
	TickIntervalMs   int64 `json:"tickIntervalMs"`
}

// DefaultTickIntervalMs makes a client's watchdog wait for ten minutes of silence:
// ticks cost an invocation each, so they are rare.
const DefaultTickIntervalMs = 300_000

// NewHello is a hello-ok without limits and defaults, which the caller fills in.
// Lists are never null.
func NewHello(version, connID string, methods, events, scopes []string) HelloOK {
	list := func(s []string) []string { return append([]string{}, s...) }
	return HelloOK{
		Type: "hello-ok", Protocol: Version,
		Server:   HelloServer{Version: version, ConnID: connID},
		Features: HelloFeatures{Methods: list(methods), Events: list(events), Capabilities: []string{}},
		Snapshot: HelloSnapshot{Presence: []json.RawMessage{}},
		Auth:     HelloAuth{Role: RoleOperator, Scopes: list(scopes)},
		Policy:   HelloPolicy{MaxPayload: MaxMessageIn, MaxBufferedBytes: 2 * MaxMessageIn, TickIntervalMs: DefaultTickIntervalMs},
	}
}
