# CPython: a bytecode interpreter with reference counts, and a heap of small objects.

python_start() { for run in 1 2 3 4 5 6 7 8 9 10; do python3 -c 'print("started")' || return; done; }
python_start_result() { cksum < /tmp/python_start.out; }
part python_start

python_objects() { python3 "$here/objects.py"; }
python_objects_result() { cat /tmp/python_objects.out; }
part python_objects

python_floats() { python3 "$here/floats.py"; }
python_floats_result() { cat /tmp/python_floats.out; }
part python_floats
