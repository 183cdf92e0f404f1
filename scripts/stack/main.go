// Command stack looks after a deployed stack, on AWS or at the endpoint that
// AWS_ENDPOINT_URL names, with the credentials of the environment:
//
//	stack token -prefix laneway- [-name first]   makes a gateway token and prints it
//	stack keys -secret ARN                       stores the providers' keys of the environment
//	stack bootstrapped                           fails where CDK has never been set up
//	stack empty -name laneway                    deletes the objects of its bucket, so that it can go
//	stack drop -name laneway [-yes]              lists, and with -yes deletes, the data that a stack left
//
// It guarantees that keys are read from the environment only and are never printed,
// and that drop deletes nothing without -yes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"laneway/shared/table/dynamo"
	"laneway/shared/token"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "stack:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage: stack token -prefix PREFIX [-name NAME] | keys -secret ARN | bootstrapped | empty -name STACK | drop -name STACK [-yes]")

// run carries out one command.
func run(ctx context.Context, args []string, env func(string) string, out io.Writer) error {
	if len(args) == 0 {
		return errUsage
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	prefix := flags.String("prefix", "", "")
	name := flags.String("name", "", "")
	secret := flags.String("secret", "", "")
	yes := flags.Bool("yes", false, "")
	if err := flags.Parse(args[1:]); err != nil || flags.NArg() > 0 {
		return errUsage
	}
	switch {
	case args[0] == "token" && *prefix != "":
		return withAWS(ctx, func(c aws.Config) error { return makeToken(ctx, c, *prefix, *name, out) })
	case args[0] == "keys" && *secret != "":
		return storeKeys(ctx, env, *secret, out)
	case args[0] == "bootstrapped":
		return withAWS(ctx, func(c aws.Config) error { return bootstrapped(ctx, c) })
	case args[0] == "empty" && *name != "":
		return withAWS(ctx, func(c aws.Config) error { return emptyBucket(ctx, c, *name) })
	case args[0] == "drop" && *name != "":
		return withAWS(ctx, func(c aws.Config) error { return drop(ctx, c, *name, *yes, out) })
	}
	return errUsage
}

func withAWS(ctx context.Context, do func(aws.Config) error) error {
	c, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return fmt.Errorf("AWS configuration: %w", err)
	}
	return do(c)
}

// makeToken stores the digest of a new token of the default tenant and prints the
// token, alone on its line, so that a script can take it.
func makeToken(ctx context.Context, c aws.Config, prefix, name string, out io.Writer) error {
	store := token.Store{Table: dynamo.New(dynamodb.NewFromConfig(c), dynamo.Config{Prefix: prefix})}
	made, err := store.Add(ctx, token.Grant{Name: name})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, made)
	return err
}
