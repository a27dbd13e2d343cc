#!/everett-bench/busybox sh
# PID 1 in the initramfs. It switches to the root filesystem without any input from the host. When a step fails it
# exits, which ends the machine, and the host notices that.
set -e
busybox=/everett-bench/busybox
root=/everett-bench/root
$busybox mount -t devtmpfs dev /dev
# The image's own modules, in the order in which the agent loads them.
while read -r module; do $busybox insmod "/lib/everett-modules/$module"; done < /etc/everett/modules
$busybox ip link set lo up
$busybox mount -t squashfs -o ro /dev/vda $root
$busybox mount -t devtmpfs dev $root/dev
$busybox mount -t proc proc $root/proc
$busybox mount -t tmpfs tmpfs $root/tmp
$busybox mkdir $root/dev/shm
$busybox mount -t tmpfs tmpfs $root/dev/shm
$busybox cp -r /everett-bench/workloads $root/tmp/
exec $busybox switch_root $root /bin/sh /tmp/workloads/run.sh $($busybox cat /everett-bench/names)
