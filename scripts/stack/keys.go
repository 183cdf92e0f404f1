package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
)

// keyNames are the members of the secret, named like the variables they come from.
var keyNames = []string{"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL"}

var errNoKeys = errors.New("none of " + strings.Join(keyNames, ", ") + " is set")

// storeKeys puts what is set in the environment into the secret and leaves its other
// members as they are.
func storeKeys(ctx context.Context, env func(string) string, arn string, out io.Writer) error {
	given := fromEnvironment(env)
	if len(given) == 0 {
		return errNoKeys
	}
	return withAWS(ctx, func(c aws.Config) error {
		client := secretsmanager.NewFromConfig(c)
		have, err := client.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &arn})
		if err != nil {
			return fmt.Errorf("read the secret: %w", err)
		}
		merged, names, err := merge(aws.ToString(have.SecretString), given)
		if err != nil {
			return err
		}
		if _, err := client.PutSecretValue(ctx, &secretsmanager.PutSecretValueInput{SecretId: &arn, SecretString: &merged}); err != nil {
			return fmt.Errorf("write the secret: %w", err)
		}
		_, err = fmt.Fprintf(out, "stored: %s\n", strings.Join(names, ", "))
		return err
	})
}

func fromEnvironment(env func(string) string) map[string]string {
	given := map[string]string{}
	for _, name := range keyNames {
		if v := env(name); v != "" {
			given[name] = v
		}
	}
	return given
}

// merge gives the new text of the secret and the names that it took from given.
func merge(old string, given map[string]string) (text string, names []string, err error) {
	all := map[string]json.RawMessage{}
	if old != "" && json.Unmarshal([]byte(old), &all) != nil {
		// The decoder's own error could quote the secret.
		return "", nil, errors.New("the secret is not a JSON object; it was left as it is")
	}
	for _, name := range keyNames {
		v, ok := given[name]
		if !ok {
			continue
		}
		if all[name], err = json.Marshal(v); err != nil {
			return "", nil, err
		}
		names = append(names, name)
	}
	b, err := json.Marshal(all)
	return string(b), names, err
}
