# The edition without functions: one process, or several, over DynamoDB, SQS and S3.
#
#   docker build -t laneway .
#   docker run -p 18789:18789 -e OPENCLAW_GATEWAY_TOKEN -e ANTHROPIC_API_KEY -e AWS_REGION laneway
#
# Processes over the same stores need the same token, and an address under which the
# others reach each of them: --advertise http://HOST:18789.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags='-s -w' -o /laneway ./cmd/laneway \
 && mkdir -p /data

# Nothing but certificates, time zones and a user that is not root.
FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /laneway /laneway
COPY --from=build --chown=nonroot:nonroot /data /data
EXPOSE 18789
ENTRYPOINT ["/laneway"]
# No shell tools: there is no shell in here.
CMD ["serve", "--backend", "aws", "--listen", "0.0.0.0:18789", "--data", "/data", "--no-shell"]
