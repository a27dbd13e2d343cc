# Runs the workloads that its arguments name, each by a script of that name in this folder. In a guest this script is
# PID 1 in the root filesystem, and its end ends the machine. On the host it is PID 1 of its namespace.
#
# A workload consists of parts. Each part is a shell function that runs between two marks on the console (read by
# marks.rs). A function NAME_result prints the part's result, which is the same on every machine. The input of a part is
# prepared before its first mark.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 TZ=UTC HOME=/tmp
here=$(dirname "$0")
cd /tmp

part() {
    name=$1
    echo "everett-bench: begin $name"
    if "$name" > "/tmp/$name.out" 2>&1; then
        echo "everett-bench: end $name"
        echo "everett-bench: result $("${name}_result")"
    else
        tail -n 3 "/tmp/$name.out"
        echo "everett-bench: failed $name"
    fi
}

for workload in "$@"; do
    . "$here/$workload.sh"
done
echo "everett-bench: done"
