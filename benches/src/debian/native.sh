# PID 1 of a native run, in namespaces of its own: mounts what init.sh mounts in a guest, and runs the workloads.
# Arguments: the root file system, the folder of scripts, the CPU for all processes, and the names of the workloads.
set -e
root=$1 scripts=$2 cpu=$3
shift 3
busybox=$root/usr/bin/busybox
$busybox ip link set lo up
$busybox mount -t proc proc $root/proc
# Devices are the host's, since a user namespace has none of its own.
$busybox mount -t tmpfs tmpfs $root/dev
for device in null zero full random urandom; do
    : > $root/dev/$device
    $busybox mount -o bind /dev/$device $root/dev/$device
done
$busybox ln -s /proc/self/fd $root/dev/fd
$busybox mkdir $root/dev/shm
$busybox mount -t tmpfs tmpfs $root/dev/shm
$busybox mount -t tmpfs tmpfs $root/tmp
$busybox cp -r $scripts $root/tmp/
exec $busybox chroot $root /usr/bin/taskset -c $cpu /bin/sh /tmp/workloads/run.sh "$@"
