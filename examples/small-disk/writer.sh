# Counts on the disk. Each number is in a file of its own that is renamed into place, and is flushed before it is printed.
grep -q ' /data ext4 ' /proc/mounts || exit 1
n=$(cat /data/n 2> /dev/null || echo 0)
echo "begins at $n"
while n=$((n + 1)); do
    echo $n > /data/new && sync /data/new && mv /data/new /data/n && sync /data || exit 1
    echo $n
done
