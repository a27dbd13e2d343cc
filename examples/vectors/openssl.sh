# Builds OpenSSL and its tests from Debian's source package, in /opt/openssl, with Debian's options. Then makes openssl.tar, a root
# filesystem with Perl and the build, for openssl.toml.
#
# Needs root, a `deb-src` line in apt's sources, mmdebstrap, dpkg-dev, and a C compiler.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cd "$work"
apt-get source openssl
rm -rf /opt/openssl
mv openssl-*/ /opt/openssl
cd /opt/openssl
# Test data that a patch cannot contain.
tar xf debian/binary.tar
mkdir build
cd build
HASHBANGPERL=/usr/bin/perl ../Configure shared --prefix=/usr --openssldir=/usr/lib/ssl --libdir=lib/x86_64-linux-gnu no-idea \
    no-mdc2 no-rc5 no-zlib no-ssl3 enable-unit-test no-ssl3-method enable-rfc3779 enable-cms no-capieng no-rdrand \
    enable-ec_nistp_64_gcc_128 debian-amd64
make build_sw
cp "$here/openssl-tests.sh" tests.sh

mmdebstrap --variant=minbase --include=perl bookworm "$work/rootfs.tar"
cd /
find opt/openssl \( -name '*.[oda]' -o -path opt/openssl/.pc -o -path opt/openssl/doc -o -path opt/openssl/build/test-runs \) \
    -prune -o -print0 |
    tar --append -f "$work/rootfs.tar" --owner=0 --group=0 --no-recursion --null -T -
mv "$work/rootfs.tar" "$here/openssl.tar"
