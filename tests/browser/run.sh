#!/usr/bin/env bash
# Opens the HTML report in Chromium and looks at it: see check.mjs. Installs what is missing:
# Chromium, Node and npm from Debian (as root), playwright-core and axe-core from npm.
# Usage: tests/browser/run.sh [FOLDER]; screenshots are written to FOLDER/shots.
set -euo pipefail
cd "$(dirname "$0")/../.."
python="${PYTHON:-.venv/bin/python}"
folder="${1:-build/browser}"

need() {  # need COMMAND PACKAGE: install the package if there is no such command
  command -v "$1" >/dev/null && return
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "browser test: $1 is missing; install it first" >&2
    exit 1
  fi
  [ -n "${updated:-}" ] || apt-get update -qq
  updated=1
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$2" >/dev/null
}

if [ -z "${CHROMIUM:-}" ]; then
  CHROMIUM="$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)"
  if [ -z "$CHROMIUM" ]; then
    need chromium chromium
    CHROMIUM="$(command -v chromium)"
  fi
fi
export CHROMIUM
need node nodejs
need npm npm
if [ "$(node -p 'process.versions.node.split(".")[0]')" -lt 20 ]; then
  echo "browser test: playwright-core needs Node 20 or newer, this is $(node --version)" >&2
  exit 1
fi

npm ci --prefix tests/browser --no-audit --no-fund --loglevel=error
rm -rf "$folder"
"$python" -m tests.browser.make_pages "$folder"
node tests/browser/check.mjs "$folder"
