package apigw

import (
	"errors"
	"net/url"
	"strings"
)

// emulated is where LocalStack, and what speaks like it, serve an API's stage.
const emulated = "/_aws/execute-api/"

// CallbackFor is the management endpoint of a connection, for push.Target, from
// the request context that its events come with:
//
//	https://<domainName>/<stage>                       on AWS
//	<endpoint>/_aws/execute-api/<apiID>/<stage>        where an endpoint is set
//
// On AWS the domain is <apiID>.execute-api.<region>.amazonaws.com; behind a
// domain of one's own, the path mapping must be named like the stage.
func CallbackFor(domainName, stage, apiID, endpoint string) string {
	if endpoint != "" {
		return strings.TrimRight(endpoint, "/") + emulated + url.PathEscape(apiID) + "/" + url.PathEscape(stage)
	}
	return "https://" + domainName + "/" + url.PathEscape(stage)
}

// base is the URL that connections of a callback are posted under. Where an
// endpoint is set nothing else is ever called: the callback only tells the API
// and the stage, in either form.
func base(callback string, endpoint *url.URL) (*url.URL, error) {
	u, err := url.Parse(callback)
	if err != nil || u.Host == "" {
		return nil, errors.New("the callback is no URL")
	}
	if endpoint == nil {
		if u.Scheme != "https" {
			return nil, errors.New("the callback is not https")
		}
		return u, nil
	}
	path, ok := strings.CutPrefix(u.Path, emulated)
	apiID, stage, _ := strings.Cut(strings.Trim(path, "/"), "/")
	if !ok {
		apiID, _, ok = strings.Cut(u.Host, ".execute-api.")
		stage = strings.Trim(u.Path, "/")
	}
	if !ok || apiID == "" || stage == "" || strings.Contains(stage, "/") {
		return nil, errors.New("the callback names no API and stage")
	}
	return endpoint.JoinPath(emulated, url.PathEscape(apiID), url.PathEscape(stage)), nil
}
