#!/usr/bin/env bash
# Generate clients from the OpenAPI document of a running service, compile them, and call it.
#
#     tests/generators/run.sh http://127.0.0.1:8000
#
# Needs openapi-generator-cli and a Java; of the languages those whose compilers are installed:
# tsc, node and npm (create, learn, predict), mvn (Java, compiled), go (compiled).
set -euo pipefail
url=${1:?usage: tests/generators/run.sh URL}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
curl --fail --silent --show-error "$url/openapi.json" --output "$scratch/openapi.json"
cd "$scratch"

generate() { # GENERATOR FOLDER [option ...]
    openapi-generator-cli generate -g "$1" -i openapi.json -o "$2" "${@:3}" >"$2.log" 2>&1 || {
        cat "$2.log"
        return 1
    }
}

has() {
    for command in "$@"; do
        command -v "$command" >/dev/null || {
            echo "Skipped: $command is not installed."
            return 1
        }
    done
}

if has tsc node npm; then # typescript-fetch reads no answer that is one object or several
    generate typescript-axios client
    cp "$here/call.ts" .
    npm install --silent --no-audit --no-fund axios @types/node
    tsc --strict --skipLibCheck --target ES2022 --module commonjs --outDir out call.ts
    node out/call.js "$url"
    echo "TypeScript: created, learned, predicted."
fi

if has mvn; then # the library native does not compile where a body is an object or an array
    generate java java --library=okhttp-gson
    mvn -q -B -f java/pom.xml -DskipTests compile
    echo "Java: compiled."
fi

if has go; then
    generate go go --additional-properties=isGoSubmodule=false
    (cd go && go mod tidy && go build ./...)
    echo "Go: compiled."
fi
