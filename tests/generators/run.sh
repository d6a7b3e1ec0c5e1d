#!/usr/bin/env bash
# Generate clients from the OpenAPI document of a running service, compile them, and call it.
#
#     tests/generators/run.sh http://127.0.0.1:8000
#
# Needs openapi-generator-cli and a Java; of the languages those whose compilers are installed:
# TypeScript (tsc, node, npm), Java (mvn) and Go (go). Each client creates a model, learns, predicts.
set -euo pipefail
url=${1:?usage: tests/generators/run.sh URL}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
curl --fail --silent --show-error "$url/openapi.json" --output "$scratch/openapi.json"
cd "$scratch"

generate() { # GENERATOR FOLDER [option ...]
    mkdir -p "$2"
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
    generate java java --library=okhttp-gson -p openApiNullable=false
    cp "$here/Call.java" java/src/main/java
    if mvn -q -B -f java/pom.xml -DskipTests package dependency:copy-dependencies >mvn.log 2>&1; then
        java -cp "java/target/classes:java/target/dependency/*" Call "$url"
        echo "Java: created, learned, predicted."
    elif grep -q "Could not transfer artifact" mvn.log; then
        echo "Skipped: Java, as Maven reaches no repository."
    else
        cat mvn.log
        exit 1
    fi
fi

if has go; then # without the option it tries every learner's type on an answer
    generate go go/src/hinged/client -p useOneOfDiscriminatorLookup=true
    mkdir go/src/hinged/call
    cp "$here/call.go" go/src/hinged/call/
    packages=/usr/share/gocode # Debian: golang-gopkg-validator.v2-dev
    if [ -d $packages/src/gopkg.in/validator.v2 ]; then
        GO111MODULE=off GOPATH="$PWD/go:$packages" go run hinged/call "$url"
    else
        rm go/src/hinged/client/go.mod
        (cd go/src/hinged && go mod init hinged && go mod tidy && go run ./call "$url")
    fi
    echo "Go: created, learned, predicted."
fi
