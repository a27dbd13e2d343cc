# A JVM, which compiles hot methods while they run, with H2, a database in Java. The options are those that a JVM would
# choose by itself on a machine with one CPU and little memory, so the host's size does not matter.

jvm() { java -XX:+UseSerialGC -Xmx256m -XX:ActiveProcessorCount=1 "$@"; }

jvm_start() { jvm -version; }
jvm_start_result() { cksum < /tmp/jvm_start.out; }
part jvm_start

jvm_h2() {
    jvm -cp /usr/share/java/h2.jar org.h2.tools.RunScript -url jdbc:h2:mem:bench -script "$here/h2.sql" -showResults
}
jvm_h2_result() { cksum < /tmp/jvm_h2.out; }
part jvm_h2
