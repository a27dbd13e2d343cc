# Runs the tests of each package. Prints the number of results, the number of failures, and a digest of the names and results.
cd "${0%/*}"
results=$(mktemp)
for package in */; do
    (cd "$package" && ./test -test.short -test.v) 2>&1 | grep -E '^ *--- ' | sed 's/ ([0-9.]*s)$//' | LC_ALL=C sort > "$results"
    echo "$package $(wc -l < "$results") $(grep -c -- '--- FAIL' "$results") $(md5sum < "$results")"
done
rm "$results"
