# Two disks: one carries the command, its programs and its files into the emulated host, the other brings the results
# back. Each is a tar archive without a file system. The emulated host unpacks the first one into its root folder.

# Bytes of a cylinder with 16 heads and 63 sectors. Disks consist of whole cylinders, because Bochs requires it.
JOB_CYLINDER_BYTES=$((16 * 63 * 512))

# Copies a file or folder, with the libraries of each program in it.
job_carry() {
    local from=$1 to=$2 file library
    [[ -e $from ]] || fail "$from does not exist"
    mkdir -p "$(dirname "$to")"
    cp -aL "$from" "$to"
    while IFS= read -r file; do
        while IFS= read -r library; do
            [[ -e $work/job/$library ]] || { mkdir -p "$work/job/$(dirname "$library")" && cp -L "$library" "$work/job/$library"; }
        done < <(ldd "$file" 2>/dev/null | grep -o '/[^ ]*' || true)
    done < <(find "$to" -type f -perm -u+x)
}

# Prints the path of the program that the command's first word names, if there is such a program.
job_program() {
    local name=$1 folder
    if [[ $name == */* ]]; then
        [[ -f $name ]] || fail "$name does not exist"
        printf '%s' "$name"
        return
    fi
    for folder in "${CARGO_TARGET_DIR:-$HOSTS/../target}/release" "$HOSTS/../target/release"; do
        [[ ! -f $folder/$name ]] || { printf '%s' "$folder/$name"; return; }
    done
    [[ $name != everett ]] || fail "target/release/everett does not exist; build it with: cargo build --release"
}

# Pads a file to whole cylinders.
job_pad() {
    local bytes
    bytes=$(stat -c %s "$1")
    truncate -s $(((bytes / JOB_CYLINDER_BYTES + 1) * JOB_CYLINDER_BYTES)) "$1"
}

# Writes the disk of the job.
job() {
    local disk=$1 root=$work/job program pair word words=("${command[@]}")
    mkdir -p "$root/job/bin" "$root/job/etc"
    program=$(job_program "${command[0]}")
    if [[ -n $program ]]; then
        words[0]=/job/bin/$(basename "$program")
        job_carry "$program" "$root${words[0]}"
    fi
    for pair in ${with[@]+"${with[@]}"}; do
        if [[ $pair == *=/* ]]; then
            job_carry "${pair%%=/*}" "$root/${pair#*=/}"
        else
            job_carry "$pair" "$root/job/$(basename "$pair")"
        fi
    done
    {
        echo "cd /job"
        for word in ${environment[@]+"${environment[@]}"}; do
            printf 'export %s\n' "$(shell_words "$word")"
        done
        printf 'exec %s\n' "$(shell_words "${words[@]}")"
    } >"$root/job/command"
    tar -c -f "$disk" --owner=0 --group=0 -C "$root" .
    job_pad "$disk"
    rm -rf "$root"
}

# Unpacks the results. Prints the command's status, or nothing if the emulated host did not write it.
job_finish() {
    local disk=$1 status
    rm -rf "$logs/end"
    mkdir -p "$logs/end"
    tar -x -f "$disk" --no-same-owner -C "$logs/end" 2>"$logs/end.log" || rm -f "$logs/end/whole"
    if [[ -n $out && -d $logs/end/results ]]; then
        mkdir -p "$out" && cp -a "$logs/end/results/." "$out/" 2>>"$logs/end.log" || rm -f "$logs/end/whole"
    fi
    status=$(cat "$logs/end/status" 2>/dev/null || true)
    [[ ! $status =~ ^[0-9]+$ ]] || printf '%s' "$status"
}

# True if all results of the command were unpacked.
job_is_whole() {
    [[ -e $logs/end/whole ]]
}

# Prints the command's duration by the emulated host's clock, in seconds, or "null".
job_seconds() {
    local told
    told=$(cat "$logs/end/seconds" 2>/dev/null || true)
    [[ $told =~ ^[0-9]+([.][0-9]+)?$ ]] || told=null
    printf '%s' "$told"
}
