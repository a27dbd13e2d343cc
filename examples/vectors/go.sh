# Compiles tests of Go's standard library for x86-64-v3, in /opt/go-tests, and makes go.tar, a root filesystem with them, for go.toml.
#
# Needs root, mmdebstrap and Go (Debian's package golang-go).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

rm -rf /opt/go-tests
mkdir -p /opt/go-tests
cp "$here/go-tests.sh" /opt/go-tests/run.sh
root=$(go env GOROOT)/src
cd "$root"
for package in bytes container/heap crypto/aes crypto/cipher crypto/ecdsa crypto/ed25519 crypto/elliptic crypto/hmac crypto/md5 \
    crypto/rc4 crypto/rsa crypto/sha1 crypto/sha256 crypto/sha512 encoding/base64 encoding/binary encoding/gob encoding/hex \
    encoding/json fmt hash/adler32 hash/crc32 hash/crc64 hash/fnv hash/maphash image/color math math/big math/bits math/cmplx \
    math/rand sort strconv strings text/template unicode/utf8; do
    folder=/opt/go-tests/$(echo "$package" | tr / -)
    mkdir "$folder"
    GOAMD64=v3 CGO_ENABLED=0 GOCACHE="$work/cache" go test -c -o "$folder/test" "$package"
    if [ -d "$package/testdata" ]; then
        cp -rL "$package/testdata" "$folder"
    fi
done

mmdebstrap --variant=minbase bookworm "$work/rootfs.tar"
tar --append -f "$work/rootfs.tar" -C / --sort=name --owner=0 --group=0 opt/go-tests
mv "$work/rootfs.tar" "$here/go.tar"
