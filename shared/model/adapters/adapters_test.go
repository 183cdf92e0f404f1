package adapters

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"laneway/shared/model"
	"laneway/shared/model/catalog"
	"laneway/shared/model/choose"
	"laneway/shared/model/modeltest"
	"laneway/shared/model/route"
)

func ask() model.Request {
	return model.Request{Messages: []model.Message{{Role: model.User, Content: []model.Block{{Type: model.Text, Text: "hi"}}}}}
}

// From the environment's settings to an answer, for a server that must be asked
// for its models first.
func TestFromSettingsToAnAnswer(t *testing.T) {
	t.Parallel()
	srv := modeltest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/models") {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"data":[{"id":"qwen3"},{"id":"phi"}]}`))
			return
		}
		modeltest.Events(w, `{"choices":[{"delta":{"content":"Hello"},"finish_reason":"stop"}]}`, "[DONE]")
	})
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	got, infos, err := choose.Select(t.Context(), choose.Config{OpenAIBaseURL: srv.URL + "/v1"}, Makers(client))
	if err != nil || got.Name != "openai" || got.Model != "qwen3" || got.Endpoint != model.Local || len(infos) != 3 {
		t.Fatalf("= %+v, %+v, %v", got, infos, err)
	}
	r := ask()
	r.Model = got.Model
	if turn := modeltest.Collect(t, got.Provider.Stream(t.Context(), r)); turn.Text() != "Hello" {
		t.Errorf("turn = %+v", turn)
	}
	body := string(srv.Calls()[1].Body)
	if !strings.Contains(body, `"model":"qwen3"`) {
		t.Error(body)
	}
}

func TestEachAdapterIsMade(t *testing.T) {
	t.Setenv("AWS_REGION", "eu-west-1")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_CONFIG_FILE", t.TempDir()+"/none")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", t.TempDir()+"/none")
	for _, cfg := range []choose.Config{
		{AnthropicKey: "k"},
		{OpenAIKey: "k"},
		{Selector: "bedrock/x", AWS: true},
	} {
		got, _, err := choose.Select(t.Context(), cfg, Makers(nil))
		if err != nil || got.Provider == nil {
			t.Errorf("%+v: %v", got, err)
		}
	}
}

func TestBadAddressesNameTheirVariable(t *testing.T) {
	t.Parallel()
	for variable, cfg := range map[string]choose.Config{
		"OPENAI_BASE_URL":    {OpenAIBaseURL: "ftp://hunter2@x"},
		"ANTHROPIC_BASE_URL": {AnthropicKey: "k", AnthropicURL: "ftp://hunter2@x"},
	} {
		_, _, err := choose.Select(t.Context(), cfg, Makers(nil))
		if err == nil || !strings.Contains(err.Error(), variable) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", variable, err)
		}
	}
}

// What a configuration names is what is sent: address, key, headers.
func TestMake_AsConfigured(t *testing.T) {
	t.Parallel()
	srv := modeltest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/messages") {
			w.WriteHeader(http.StatusPaymentRequired)
			return
		}
		modeltest.Events(w, `{"choices":[{"delta":{"content":"Hello"},"finish_reason":"stop"}]}`, "[DONE]")
	})
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for _, api := range []catalog.API{catalog.OpenAI, catalog.Anthropic} {
		p, err := Make(client)(t.Context(), route.Spec{API: api, Name: "corp", BaseURL: srv.URL, Key: "secret", Header: http.Header{"X-Team": {"blue"}}})
		if err != nil {
			t.Fatal(err)
		}
		var failed *model.Error
		for _, err := range p.Stream(t.Context(), ask()) {
			if err != nil {
				failed, _ = errors.AsType[*model.Error](err)
			}
		}
		calls := srv.Calls()
		h := calls[len(calls)-1].Header
		if !strings.Contains(h.Get("Authorization"), "secret") || h.Get("X-Team") != "blue" {
			t.Errorf("%s: %v", api, h)
		}
		if failed != nil && failed.Provider != "corp" {
			t.Errorf("%s: %+v", api, failed)
		}
	}
	if _, err := Make(client)(t.Context(), route.Spec{API: "smoke-signals"}); err == nil {
		t.Error("an unknown API is made")
	}
}
