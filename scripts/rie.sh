# Sourced: sets emulator to the Lambda runtime interface emulator, which is installed
# under .cache/ once.
rie_version=v0.0.0-20261030222936-bef5c4ba774d
emulator=$PWD/.cache/bin/aws-lambda-rie-$rie_version
if [[ ! -x $emulator ]]; then
  mkdir -p "${emulator%/*}"
  temporary=$(mktemp -d "${emulator%/*}/build.XXXXXX")
  GOFLAGS= GOBIN=$temporary go install "github.com/aws/aws-lambda-runtime-interface-emulator/cmd/aws-lambda-rie@$rie_version"
  mv "$temporary"/* "$emulator"
  rmdir "$temporary"
fi
