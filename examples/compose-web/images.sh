#!/bin/sh
# Makes the images of the compose examples from Debian's packages, as OCI layouts in images/, with mmdebstrap and umoci. It is needed
# only without a registry: with one, `docker compose` and Everett can take the official images.
#
#     sh images.sh [FOLDER [NAME...]]     the folder of the images, and their names; default: images, and all three
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-$here/images}
[ $# -eq 0 ] || shift
suite=bookworm
mirror=${MIRROR:-http://deb.debian.org/debian}
# Times of files are no later than this, so the same packages give the same image.
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-1767225600}
mkdir -p "$folder"

# image NAME PACKAGES: a layout with one layer
image() {
    rm -rf "$folder/$1" "$folder/$1.tar"
    mmdebstrap --quiet --variant=essential --include="$2" --dpkgopt=force-unsafe-io \
        --customize-hook='rm -rf "$1"/usr/share/doc "$1"/usr/share/man "$1"/usr/share/locale "$1"/var/cache/apt/*' \
        "$suite" "$folder/$1.tar" "$mirror"
    umoci init --layout "$folder/$1"
    umoci new --image "$folder/$1:it"
    umoci raw add-layer --image "$folder/$1:it" "$folder/$1.tar"
    rm "$folder/$1.tar"
}

for name in ${*:-python redis postgres}; do
    case $name in
        python)
            image python python3-minimal,python3-psycopg2,python3-redis
            umoci config --image "$folder/python:it" --config.cmd python3
            ;;
        redis)
            image redis redis-server,redis-tools
            umoci config --image "$folder/redis:it" --config.cmd redis-server --config.user redis \
                --config.volume /var/lib/redis --config.workingdir /var/lib/redis
            ;;
        postgres)
            image postgres postgresql-15
            umoci insert --image "$folder/postgres:it" "$here/postgres-entrypoint.sh" /usr/local/bin/docker-entrypoint.sh
            umoci config --image "$folder/postgres:it" --config.user postgres \
                --config.entrypoint sh --config.entrypoint /usr/local/bin/docker-entrypoint.sh --config.cmd postgres \
                --config.env PATH=/usr/local/bin:/usr/lib/postgresql/15/bin:/usr/sbin:/usr/bin:/sbin:/bin \
                --config.env PGDATA=/var/lib/postgresql/data --config.volume /var/lib/postgresql
            ;;
        *)
            echo "images.sh: there is no image \"$name\"; there are python, redis and postgres" >&2
            exit 2
            ;;
    esac
done
