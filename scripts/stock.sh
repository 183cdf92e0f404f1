# Sourced, behind node.sh: installs the stock gateway and command line, the reference
# client and the published schema from npm under .cache/conformance, once, and names
# that directory.
stock_packages=(openclaw@2026.9.6 @openclaw/gateway-client@2026.9.1 @openclaw/gateway-protocol@2026.9.1)
stock_home=$PWD/.cache/conformance
# The mark names what is installed, whole; it comes last.
if [[ $(cat "$stock_home/installed" 2>/dev/null) != "${stock_packages[*]}" ]]; then
  rm -rf "$stock_home"
  mkdir -p "$stock_home"
  echo "installing ${stock_packages[*]} under .cache/conformance" >&2
  npm install --prefix "$stock_home" --no-audit --no-fund --no-save --loglevel=error "${stock_packages[@]}" >&2
  echo "${stock_packages[*]}" >"$stock_home/installed"
fi
