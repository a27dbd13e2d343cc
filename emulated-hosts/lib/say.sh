# Messages, quoting and JSON.

# Ends with one line on stderr and status 125. Lower statuses belong to the command.
fail() {
    printf 'emulated-hosts/run: %s\n' "$*" >&2
    exit 125
}

# Fails if one of these programs is missing.
need() {
    local program
    for program in "$@"; do
        command -v "$program" >/dev/null || fail "$program is not installed"
    done
}

# Prints the arguments as words for a POSIX shell.
shell_words() {
    local word
    for word in "$@"; do
        printf "'%s' " "${word//\'/\'\\\'\'}"
    done
}

# Prints the argument as a JSON string.
json_string() {
    local text=$1 at code
    text=${text//\\/\\\\}
    text=${text//\"/\\\"}
    printf '"'
    for ((at = 0; at < ${#text}; at++)); do
        if [[ ${text:at:1} == [[:cntrl:]] ]]; then
            printf -v code '%d' "'${text:at:1}"
            printf '\\u%04x' "$code"
        else
            printf '%s' "${text:at:1}"
        fi
    done
    printf '"'
}

# Prints the arguments as a JSON list of strings.
json_list() {
    local comma='' word
    printf '['
    for word in "$@"; do
        printf '%s' "$comma"
        json_string "$word"
        comma=,
    done
    printf ']'
}

# Prints the seconds since a time in nanoseconds, with one decimal.
seconds_since() {
    local tenths=$((($(date +%s%N) - $1) / 100000000))
    printf '%d.%d' $((tenths / 10)) $((tenths % 10))
}
