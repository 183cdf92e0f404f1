# Sourced: puts Node 24 in front of PATH, from npm (which any npm can install), under
# .cache/node. The stock client needs 24; CDK's jsii takes the same one.
node_home=$PWD/.cache/node
if [[ ! -x $node_home/node_modules/node/bin/node ]]; then
  if ! command -v npm >/dev/null; then
    echo "npm is needed to install Node 24, and is not in PATH" >&2
    return 3 2>/dev/null || exit 3
  fi
  echo "installing Node 24 under .cache/node"
  npm install --prefix "$node_home" --no-audit --no-fund --no-save --loglevel=error node@24
fi
export PATH=$node_home/node_modules/node/bin:$PATH
