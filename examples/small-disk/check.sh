# The file system is in order, and the number is one.
n=$(cat /data/n) || exit 1
case $n in '' | *[!0-9]*) echo "the number is \"$n\""; exit 1 ;; esac
echo "the number is $n"
