package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
)

// samples gives every event of events/ to every deployed function. The right ones are
// served; a wrong one is an error that says what it is not, or, where it is a queue's,
// a message that fails by its id. None ends a process.
func samples(t *testing.T, s *stack) {
	files, err := filepath.Glob(filepath.Join("..", "..", "events", "*.json"))
	if err != nil || len(files) < 7 {
		t.Fatalf("%d samples, %v", len(files), err)
	}
	says := map[string]string{
		"gateway": "not an event of the WebSocket API", "runner": "not an event of a queue", "notifier": "not an event of a queue",
		"scheduler": "not an event of a job's schedule", "watchdog": "not an event of a schedule rule",
	}
	for _, function := range []string{"gateway", "runner", "notifier", "scheduler", "watchdog"} {
		for _, file := range files {
			name := strings.TrimSuffix(filepath.Base(file), ".json")
			t.Run(function+" gets "+name, func(t *testing.T) {
				event := s.sample(t, file)
				out, err := lambda.NewFromConfig(s.aws).Invoke(within(t, patience), &lambda.InvokeInput{
					FunctionName: aws.String(s.name + "-" + function), Payload: []byte(event),
				})
				if err != nil {
					t.Fatal(err)
				}
				answer, refused := string(out.Payload), out.FunctionError != nil
				of, _, _ := strings.Cut(name, "-")
				queues := function == "runner" || function == "notifier"
				switch {
				case of == function:
					if refused || strings.Contains(answer, "itemIdentifier") {
						t.Errorf("its own event: %s", answer)
					}
				case queues && (of == "runner" || of == "notifier"):
					// The body of another queue's message.
					if refused || !strings.Contains(answer, "itemIdentifier") {
						t.Errorf("another queue's event: %s", answer)
					}
				case !refused || !strings.Contains(answer, says[function]):
					t.Errorf("refused: %t, %s", refused, answer)
				}
				if strings.Contains(answer, "panic") || strings.Contains(answer, "exit status") {
					t.Errorf("it did not bear it: %s", answer)
				}
			})
		}
	}
}

// sample is an event whose connection is of this stack's API: a function may post to no
// other.
func (s *stack) sample(t *testing.T, file string) string {
	t.Helper()
	event, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	address := strings.Split(strings.TrimPrefix(s.URL, "ws"), "/")
	api, stage := address[len(address)-2], address[len(address)-1]
	return strings.NewReplacer(
		"https://a1b2c3d4e5.execute-api.eu-central-1.amazonaws.com/prod", "http"+strings.Join(address, "/"),
		`"apiId": "a1b2c3d4e5"`, `"apiId": "`+api+`"`, `"stage": "prod"`, `"stage": "`+stage+`"`,
	).Replace(string(event))
}
