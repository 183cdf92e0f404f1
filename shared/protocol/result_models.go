package protocol

// What a credential is: static ones do not expire by themselves.
const (
	AuthStatic  = "static"
	AuthMissing = "missing"
)

// AuthStatus is the reply of models.authStatus.
type AuthStatus struct {
	At        int64          `json:"ts"`
	Providers []AuthProvider `json:"providers"` // never null
}

// AuthProvider is a provider and what opens it.
type AuthProvider struct {
	Provider    string        `json:"provider"`
	DisplayName string        `json:"displayName"`
	Status      string        `json:"status"` // static, missing
	Profiles    []AuthProfile `json:"profiles"`
}

// AuthProfile is one credential: never what it is, only how it fares.
type AuthProfile struct {
	ProfileID         string           `json:"profileId"`
	Type              string           `json:"type"` // oauth, token, api_key, aws, none
	Status            string           `json:"status"`
	UnavailableReason string           `json:"unavailableReason,omitempty"` // auth-failed, cooldown
	UnavailableUntil  int64            `json:"unavailableUntil,omitempty"`
	Models            map[string]int64 `json:"cooldownModels,omitempty"` // of one model each, until when
	ErrorCount        int              `json:"errorCount,omitempty"`
	LastUsed          int64            `json:"lastUsed,omitempty"`
}
