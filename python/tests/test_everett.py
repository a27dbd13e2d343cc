"""Tests of the package on a finding of examples/mirror. EVERETT_RUN is the run directory, EVERETT_WORLD the world file."""

import ast
import os
import pathlib
import signal
import threading
import time
import unittest

import everett

RUN = os.environ["EVERETT_RUN"]
WORLD = os.environ["EVERETT_WORLD"]


def obey_ctrl_c():
    """Gives Ctrl-C its usual effect, because a shell starts commands in the background so that they ignore it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


class Case(unittest.TestCase):
    """A finding of the exploration, and the moment at which it showed."""

    @classmethod
    def setUpClass(cls):
        cls.run_directory = everett.open(RUN)
        cls.finding = cls.run_directory.findings[0]
        cls.moment = cls.run_directory.moment(cls.finding)

    def refused(self, error, part, call, *arguments, **named):
        """Fails if a call does not raise this exception with one line that contains `part`."""
        with self.assertRaises(error) as raised:
            call(*arguments, **named)
        text = str(raised.exception)
        self.assertIn(part, text)
        self.assertNotIn("\n", text)
        return raised.exception


class Stub(unittest.TestCase):
    def test_the_type_hints_name_what_the_package_has(self):
        stub = pathlib.Path(everett.__file__).with_name("__init__.pyi")
        self.assertTrue(stub.with_name("py.typed").exists())
        members = {}
        for item in ast.parse(stub.read_text()).body:
            if isinstance(item, ast.ClassDef):
                of_bases = set().union(*(members.get(base.id, set()) for base in item.bases))
                methods = {part.name for part in item.body if isinstance(part, ast.FunctionDef)}
                members[item.name] = of_bases | {name for name in methods if not name.startswith("__")}
            elif isinstance(item, ast.FunctionDef):
                members[item.name] = None
        public = {name: of for name, of in members.items() if not name.startswith("_")}
        self.assertEqual(sorted(public), sorted(everett.__all__))
        for name, of in public.items():
            thing = getattr(everett, name)
            if of is not None and not issubclass(thing, Exception):
                # The last base is `object`.
                parts = set().union(*(vars(base) for base in thing.__mro__[:-1]))
                self.assertEqual({part for part in parts if not part.startswith("_")}, of, name)


class Recorded(Case):
    def test_a_run_has_its_findings_and_branches(self):
        run, finding = self.run_directory, self.finding
        self.assertEqual(run.nodes, ["main", "copy", "client"])
        self.assertEqual((finding.number, finding.property, finding.node), (1, "failed check", "client"))
        self.assertEqual(run.properties, {"failed check": finding.branches})
        branch = run.branch(finding.branch)
        self.assertIn((finding.property, finding.text, finding.vtime_ns), branch.violations)
        self.assertEqual(run.branch(f"b{branch.number}").trail, branch.trail)
        self.assertLess(branch.number, len(run))

    def test_wrong_names_and_vtimes_are_refused(self):
        run = self.run_directory
        self.refused(everett.EverettError, "run.json", everett.open, "/nonexistent")
        self.refused(ValueError, "engine", everett.open, RUN, engine="fast")
        self.refused(ValueError, "no folder", everett.open, RUN, debug_files=["/nonexistent"])
        self.refused(everett.EverettError, "/nonexistent.toml", everett.boot, "/nonexistent.toml")
        self.refused(LookupError, "no finding 99", run.moment, 99)
        self.refused(LookupError, "no branch 99999", run.moment, "b99999")
        self.refused(LookupError, "no branch", run.branch, 2**64 - 1)
        for number in [-1, 2**32, 2**64, "99999999999", "b99999999999999999999999"]:
            self.refused(LookupError, "", run.moment, number)
        for number in [-1, 2**64, "b99999999999999999999999"]:
            self.refused(LookupError, "", run.branch, number)
        for number in [-1, 0, 2**32, 2**64]:
            self.refused(LookupError, "", run.finding, number)
        for number in [True, False, None, 1.5, "1", self.finding]:
            self.refused(TypeError, "branch", run.branch, number)
        self.refused(TypeError, "finding", run.finding, True)
        self.refused(ValueError, "neither", run.moment, "a\nb")
        self.refused(ValueError, "neither", run.moment, "1b")
        self.refused(ValueError, "not on this timeline", run.moment, 1, at="1h")
        self.refused(ValueError, "not on this timeline", run.moment, 1, at=0)
        for at in [-1, -0.5, float("nan"), float("inf"), 2**63, 10**30, "soon", "", "3 parsecs"]:
            self.refused(ValueError, "", run.moment, 1, at=at)
        for at in [True, [], b"1s", {}]:
            self.refused(TypeError, "vtime", run.moment, 1, at=at)
        for of in [None, True, 1.5, []]:
            self.refused(TypeError, "finding", run.moment, of)
        self.refused(TypeError, "", everett.Run)


class Moments(Case):
    def test_a_moment_shows_what_its_machines_hold(self):
        moment = self.moment
        self.assertEqual(moment.vtime_ns, self.finding.vtime_ns)
        mirror = [process for process in moment.processes("copy") if process.name == "mirror"]
        self.assertEqual([process.command[0] for process in mirror], ["/opt/mirror"])
        stack = moment.stacks("copy", mirror[0])[0]
        self.assertTrue(stack.complete)
        functions = [frame.function for frame in stack.program]
        self.assertTrue(any(function and function.startswith("main+") for function in functions), functions)
        sockets = [socket for socket in moment.sockets("copy") if socket.state == "LISTEN" and socket.kind == "tcp"]
        self.assertEqual([(socket.local, socket.owners[0][0]) for socket in sockets], [("0.0.0.0:7000", "mirror")])
        self.assertIn("/dev/null", [file.name for file in moment.files("copy", mirror[0].pid)])
        self.assertIn("/opt/mirror", [mapping.name for mapping in moment.mappings("copy", "mirror")])
        self.assertTrue(any("the mirror has" in event.text for event in moment.logs("client")))
        self.assertEqual(moment.messages()[-1].outcome, "deliver")

    def test_a_fork_goes_on_to_the_violation(self):
        self.assertEqual(self.moment.judge().violations, [])
        fork = self.moment.fork()
        fork.run_for("1ms")
        found = [(one.property, one.text, one.vtime_ns, one.signature) for one in fork.judge().violations]
        finding = self.finding
        self.assertEqual(found, [(finding.property, finding.text, finding.vtime_ns, finding.signature)])

    def test_memory_and_values_agree(self):
        moment = self.moment
        address = moment.value("copy", "mirror", "&numbers[0]")
        memory = moment.memory("copy", "mirror", address, 8 * 256)
        numbers = [int.from_bytes(memory[8 * n : 8 * n + 8], "little") for n in range(256)]
        self.assertEqual(numbers[50], moment.value("copy", "mirror", "numbers[50]"))
        wrong = [key for key, number in enumerate(numbers) if number not in (0, 1000000 + 7919 * key)]
        said = [event.text for event in moment.logs("client") if event.text.startswith("the mirror has")]
        self.assertEqual([f"the mirror has {numbers[key]} for key {key}, but it was {1000000 + 7919 * key}" for key in wrong], said)
        self.assertGreater(moment.value("copy", "kernel", "(u64)jiffies"), 0)

    def test_what_cannot_be_read_is_an_error(self):
        moment = self.moment
        self.refused(everett.UnmappedError, "0x0 is unmapped", moment.memory, "copy", "mirror", 0, 1)
        self.refused(everett.UnmappedError, "unmapped", moment.memory, "copy", "mirror", 2**64 - 4, 8)
        self.refused(everett.UnmappedError, "unmapped", moment.value, "copy", "mirror", "*(u64 *)8")
        last = moment.mappings("copy", "mirror")[0]
        self.refused(everett.UnmappedError, "unmapped", moment.memory, "copy", "mirror", last.start - 1, 2)
        self.refused(ValueError, "length", moment.memory, "copy", "mirror", 0, 2**40)
        self.refused(OverflowError, "", moment.memory, "copy", "mirror", -1, 1)
        self.refused(OverflowError, "", moment.memory, "copy", "mirror", 2**64, 1)
        self.refused(LookupError, "nothing", moment.value, "copy", "mirror", "nothing")
        self.refused(everett.EverettError, "division by zero", moment.value, "copy", "mirror", "1 / 0")
        self.refused(ValueError, "expression", moment.value, "copy", "mirror", "numbers[")
        self.refused(ValueError, "expression", moment.value, "copy", "mirror", "(" * 5000)
        self.refused(LookupError, "no node", moment.processes, "n9")
        self.refused(LookupError, "no node", moment.logs, "n9")
        self.refused(LookupError, "no node", moment.logs, node="")
        self.refused(LookupError, "no node", moment.fork().logs, node="n9")
        self.refused(LookupError, "no process", moment.stacks, "copy", "n9")
        self.refused(LookupError, "no process", moment.files, "copy", 4_000_000_000)
        self.refused(TypeError, "process", moment.files, "copy", 1.5)

    def test_a_moment_stays_as_it_is(self):
        moment, digest = self.moment, self.moment.digest()
        earlier = self.run_directory.moment(self.finding, at=moment.vtime - 1)
        self.assertNotEqual(earlier.digest(), digest)
        fork = earlier.fork()
        fork.exec("copy", ["sh", "-c", "echo x > /tmp/x"])
        again = self.run_directory.moment(1, at=f"{moment.vtime_ns}ns")
        self.assertEqual((again.digest(), again.vtime_ns), (digest, moment.vtime_ns))
        self.assertEqual(moment.digest(), digest)


class Forks(Case):
    def fork(self):
        return self.run_directory.root().fork()

    def test_equal_forks_are_equal_to_the_bit(self):
        def digest(fork):
            finished = fork.exec("main", ["sh", "-c", "cat; echo err >&2; exit 3"], input="text")
            self.assertEqual((finished.returncode, finished.stdout, finished.stderr), (3, b"text", b"err\n"))
            fork.inject("latency", links="all", extra="3ms", duration="200ms")
            fork.run_for("300ms")
            return fork.digest()

        first = digest(self.fork())
        self.assertEqual(digest(self.fork()), first)

    def test_an_injected_partition_drops_messages_and_ends(self):
        fork = self.fork()
        began = fork.vtime_ns
        number = fork.inject("partition", links={"from": ["copy"], "to": "all"}, duration="200ms")
        fork.run_for("1s")
        faults = {event.kind: event for event in fork.events() if event.kind in ("fault", "healed")}
        self.assertEqual([faults[kind].data["id"] for kind in ("fault", "healed")], [number, number])
        self.assertEqual([faults[kind].vtime_ns - began for kind in ("fault", "healed")], [0, 200_000_000])
        dropped = [message for message in fork.messages() if message.reason == "partition"]
        self.assertTrue(dropped)
        self.assertTrue(all("copy" in (message.sender, message.receiver) for message in dropped))

    def test_power_clocks_and_the_end_of_faults(self):
        fork = self.fork()
        fork.inject("power_loss", node="copy", duration="100ms")
        fork.run_for("50ms")
        self.refused(everett.EverettError, "copy", fork.exec, "copy", ["true"])
        self.refused(ValueError, "is off", fork.inject, "pause", node="copy")
        fork.calm()
        fork.run_for("2s")
        self.assertEqual(fork.exec("copy", ["true"]).returncode, 0)
        # The same fault again: the earlier one has ended.
        fork.inject("power_loss", node="copy", duration="100ms")
        fork.run_for("2s")
        before = float(fork.exec("client", ["date", "+%s"]).text)
        fork.inject("clock_step", node="client", step="1h")
        fork.run_for("100ms")
        self.assertAlmostEqual(float(fork.exec("client", ["date", "+%s"]).text) - before, 3600, delta=3)

    def test_a_command_that_does_not_end_is_killed(self):
        fork = self.fork()
        error = self.refused(
            everett.NoEndError, "0.5 s", fork.exec, "main", ["sh", "-c", "echo begun; sleep 1000"], limit="500ms"
        )
        self.assertEqual((error.stdout, error.stderr, error.killed), (b"begun\n", b"", True))
        self.assertEqual(fork.exec("main", ["sh", "-c", "kill -9 $$"]).returncode, -9)
        self.assertLess(fork.vtime_ns - self.run_directory.root().vtime_ns, 2_000_000_000)
        flood = fork.exec("main", ["sh", "-c", "head -c 200000 /dev/zero | tr '\\0' x"])
        self.assertTrue(flood.truncated)
        self.assertEqual(fork.exec("main", ["echo", "still there"]).text, "still there\n")

    def test_a_command_on_a_paused_node_is_not_killed(self):
        fork = self.fork()
        # The pause begins when the fork goes on, so the agent still gets the command.
        fork.inject("pause", node="main")
        error = self.refused(everett.NoEndError, "paused", fork.exec, "main", ["sleep", "1"], limit="10ms")
        self.assertFalse(error.killed)
        fork.calm()
        fork.run_for("1s")
        self.assertEqual(fork.exec("main", ["true"]).returncode, 0)

    def test_a_fork_and_its_moment_have_the_same_messages(self):
        earlier = self.run_directory.moment(1, at=self.moment.vtime - 0.5)
        fork = earlier.fork()
        fork.run_for(f"{self.moment.vtime_ns - earlier.vtime_ns}ns")
        seen = [(one.vtime_ns, one.summary) for one in self.moment.messages() if one.vtime_ns >= earlier.vtime_ns]
        forked = [(one.vtime_ns, one.summary) for one in fork.messages() if one.vtime_ns < self.moment.vtime_ns]
        self.assertTrue(forked)
        self.assertEqual(forked, seen)

    def test_texts_are_whole(self):
        def text(long):
            fork = self.fork()
            script = "X=$0; [ $1 = 1 ] || X=$X$X; env X=$X sleep 60 > /dev/null 2>&1 &"
            fork.exec("main", ["sh", "-c", script, "y" * 50_000, long])
            fork.run_for("200ms")
            stack = [one for one in fork.mappings("main", "sleep") if one.name == "[stack]"][0]
            # The environment is at the end, and the kernel has written only this part.
            length = (50_000 if long == "1" else 100_000) + 1_500
            memory = fork.memory("main", "sleep", stack.end - length, length)
            start = stack.end - length + memory.index(b"\0X=yy") + 1
            return lambda: fork.value("main", "sleep", f"str({start})")

        self.assertEqual(text("1")(), "X=" + "y" * 50_000)
        self.refused(everett.EverettError, "65536 bytes", text("2"))

    def test_wrong_calls_are_refused(self):
        fork = self.fork()
        vtime = fork.vtime_ns
        self.refused(TypeError, "list", fork.exec, "main", "uname")
        self.refused(TypeError, "", fork.exec, "main", [1])
        self.refused(ValueError, "empty", fork.exec, "main", [])
        self.refused(ValueError, "zero byte", fork.exec, "main", ["a\0b"])
        self.refused(ValueError, "at most", fork.exec, "main", ["x"] * 2000)
        self.refused(ValueError, "input", fork.exec, "main", ["cat"], input="x" * 10**6)
        self.refused(ValueError, "one hour", fork.exec, "main", ["true"], limit="2h")
        self.refused(LookupError, "no node", fork.exec, "n9", ["true"])
        self.refused(ValueError, "one hour", fork.run_for, "2h")
        self.refused(TypeError, "vtime", fork.run_for, None)
        self.refused(ValueError, "no fault", fork.inject, "explosion")
        self.refused(ValueError, "links", fork.inject, "partition")
        self.refused(ValueError, "no node", fork.inject, "pause", node="n9")
        self.refused(ValueError, "at", fork.inject, "pause", node="main", at="3s")
        self.refused(ValueError, "", fork.inject, "pause", node="main", duration="100000h")
        self.refused(TypeError, "", fork.inject, "pause", node=object())
        self.assertEqual(fork.vtime_ns, vtime)
        self.refused(everett.EverettError, "nothing", fork.exec, "main", ["nothing"])

    def test_ctrl_c_ends_a_call_and_the_fork_goes_on(self):
        obey_ctrl_c()
        fork = self.fork()
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        began = time.monotonic()
        with self.assertRaises(KeyboardInterrupt):
            fork.run_for("1h")
        self.assertLess(time.monotonic() - began, 20)
        vtime = fork.vtime_ns
        fork.run_for("10ms")
        self.assertEqual(fork.vtime_ns, vtime + 10_000_000)

    def test_ctrl_c_ends_waiting_for_a_fork_of_another_thread(self):
        obey_ctrl_c()
        fork = self.fork()
        worker = threading.Thread(target=fork.run_for, args=("30s",))
        worker.start()
        time.sleep(0.3)
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            with self.assertRaises(KeyboardInterrupt):
                fork.run_for("1h")
            self.assertTrue(worker.is_alive())
        finally:
            worker.join()

    def test_other_threads_run_meanwhile(self):
        fork = self.fork()
        ticks = []
        worker = threading.Thread(target=fork.run_for, args=("1s",))
        worker.start()
        while worker.is_alive():
            ticks.append(time.monotonic())
            time.sleep(0.001)
        self.assertGreater(len(ticks), 3)


class Worlds(Case):
    def test_a_world_file_boots_under_a_plan(self):
        world = everett.boot(WORLD, seed=self.run_directory.seed)
        self.assertEqual(world.nodes, self.run_directory.nodes)
        root = world.root()
        self.assertEqual(root.digest(), self.run_directory.root().digest())
        plan = '{"at": "10ms", "for": "50ms", "fault": "pause", "node": "main"}\n'
        fork = world.root(plan).fork()
        fork.run_for("100ms")
        self.assertEqual([event.kind for event in fork.events() if event.kind in ("fault", "healed")], ["fault", "healed"])
        self.refused(ValueError, "plan: line 1", world.root, "nonsense")
        self.refused(OverflowError, "", everett.boot, WORLD, seed=-1)


if __name__ == "__main__":
    unittest.main()
