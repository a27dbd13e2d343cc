# Node.js, whose engine V8 compiles hot functions while they run.

node_start() { node -e 'console.log("started")'; }
node_start_result() { cat /tmp/node_start.out; }
part node_start

node_objects() { node "$here/objects.js"; }
node_objects_result() { cat /tmp/node_objects.out; }
part node_objects
