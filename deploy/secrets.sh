#!/bin/sh
# Make what docker-compose.yml and kustomization.yaml mount as secrets, once: API keys, passwords,
# Redis's users. Existing files are left alone; remove a file to make it again.
#   deploy/secrets.sh            in deploy/secrets, with `hinged key` from the image
#   HINGED=hinged deploy/secrets.sh FOLDER       elsewhere, with a hinged that is installed
set -eu
here=$(cd "$(dirname "$0")" && pwd)
secrets=${1:-$here/secrets}
# Containers have users of their own: the files are for all to read, the folder for you alone.
umask 022
mkdir -p "$secrets"
secrets=$(cd "$secrets" && pwd)
chmod 700 "$secrets"

hinged_key() { # NAME SCOPE…: adds a key to keys.json and says it
    name=$1
    shift
    options=$(printf -- ' --scope %s' "$@")
    if [ -n "${HINGED:-}" ]; then
        # shellcheck disable=SC2086 # several words are meant
        $HINGED key "$name" $options --file "$secrets/keys.json"
    else
        # shellcheck disable=SC2086 # several words are meant
        docker run --rm --user "$(id -u):$(id -g)" --volume "$secrets:/secrets" \
            hinged key "$name" $options --file /secrets/keys.json
    fi | sed -n 's/^Key (not shown again): //p'
}

password() { # FILE: makes it unless it is there
    if [ ! -s "$secrets/$1" ]; then
        od -An -N24 -tx1 /dev/urandom | tr -d ' \n' >"$secrets/$1"
    fi
}

digest() { # FILE: as Redis keeps passwords
    printf '#'
    sha256sum "$secrets/$1" | cut -d ' ' -f 1
}

if [ -z "${HINGED:-}" ] && [ ! -s "$secrets/keys.json" ]; then
    docker build --tag hinged --file "$here/Dockerfile" "$here/.."
fi
if [ ! -s "$secrets/keys.json" ]; then
    hinged_key admin admin learn predict >"$secrets/admin_key"
    hinged_key prometheus predict >"$secrets/prometheus_key"
    test -s "$secrets/admin_key"
    test -s "$secrets/prometheus_key"
    chmod 600 "$secrets/admin_key"
    chmod 644 "$secrets/keys.json"
fi
password redis_password
password producer_password
password follower_password
password grafana_password
sed -e "/^user hinged /s/>PASSWORD/$(digest redis_password)/" \
    -e "/^user producer /s/>PASSWORD/$(digest producer_password)/" \
    -e "/^user follower /s/>PASSWORD/$(digest follower_password)/" \
    "$here/users.acl" >"$secrets/users.acl"
echo "Secrets are in $secrets; your own key, which may do everything, is in its file admin_key."
