# Debian packages, downloaded by apt into the cache folder. apt checks signatures with this system's keys. Nothing is
# installed, and root is not needed: apt uses a state folder of its own, in which no package counts as installed. So it
# downloads a package with all its dependencies, including its C library.

# Calls apt-get with this state folder.
packages_apt() {
    local state=$cache/apt
    mkdir -p "$state/lists/partial" "$state/archives/partial"
    : >"$state/status"
    apt-get -qq -o Dir::State="$state" -o Dir::State::lists="$state/lists" -o Dir::State::status="$state/status" \
        -o Dir::Cache="$state" -o Dir::Cache::archives="$state/archives" -o APT::Architecture=amd64 \
        -o APT::Install-Recommends=false -o APT::Sandbox::User= -o Dpkg::Use-Pty=false "$@"
}

# Unpacks packages and their dependencies into the folder $cache/NAME: packages NAME PACKAGE... An existing folder
# stays as it is; delete it to download the packages again.
packages() {
    local name=$1 folder=$cache/$1 archive
    shift
    exec 9>"$cache/lock"
    flock 9
    if [[ ! -d $folder ]]; then
        echo "emulated-hosts/run: fetching $*" >&2
        packages_apt update >&2 || fail "apt-get update failed"
        rm -rf "$cache/apt/archives" "$folder.new"
        packages_apt install --download-only -y "$@" >&2 || fail "apt-get cannot fetch: $*"
        mkdir "$folder.new"
        for archive in "$cache"/apt/archives/*.deb; do
            dpkg-deb -x "$archive" "$folder.new"
        done
        rm -rf "$cache/apt/archives"
        mv "$folder.new" "$folder"
    fi
    exec 9>&-
}

# Runs a program of unpacked packages with their C library: packages_exec NAME PROGRAM argument... The words in
# packages_before precede the command.
packages_before=()
packages_exec() {
    local folder=$cache/$1 program=$2 place loader=
    shift 2
    for place in "$folder"/{usr/,}lib/x86_64-linux-gnu; do
        [[ ! -e $place/ld-linux-x86-64.so.2 ]] || loader=$place/ld-linux-x86-64.so.2
    done
    [[ -n $loader ]] || fail "no C library in $folder; delete that folder and try again"
    ${packages_before[@]+"${packages_before[@]}"} \
        "$loader" --library-path "$folder/lib/x86_64-linux-gnu:$folder/usr/lib/x86_64-linux-gnu" "$folder/$program" "$@"
}

# Unpacks the kernel and busybox, and sets variables with their paths.
packages_guest() {
    packages guest linux-image-amd64 busybox-static
    local folder=$cache/guest modules
    modules=$(find "$folder"/{usr/,}lib/modules -mindepth 1 -maxdepth 1 -type d 2>/dev/null | head -n 1) || true
    [[ -n $modules ]] || fail "no kernel modules in $folder; delete that folder and try again"
    kernel_version=${modules##*/}
    kernel_modules=$modules
    kernel_image=$folder/boot/vmlinuz-$kernel_version
    busybox=$(find "$folder" -path '*bin/busybox' -type f | head -n 1)
    [[ -x $busybox && -f $kernel_image ]] || fail "no busybox or no kernel in $folder; delete that folder and try again"
}
