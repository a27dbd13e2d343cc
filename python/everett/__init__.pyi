"""Stand inside any moment of a deterministic multiverse of Linux servers.

A *run* is the directory that ``everett explore`` writes. A *moment* is an instant of a timeline. It never changes: all of
it is read from outside, and no guest executes an instruction for it. A *fork* of a moment goes on: commands run in its
machines, faults are injected, and virtual time (*vtime*) passes. Nothing outside the fork changes.

    import everett

    run = everett.open("run")
    moment = run.moment(run.findings[0])
    print(moment.processes("n1"))
    fork = moment.fork()
    print(fork.exec("n1", ["uname", "-r"]).text)
    fork.inject("partition", links={"from": ["n1"], "to": "all"}, duration="2s")
    fork.run_for("5s")
    print(fork.judge().violations)

Vtimes are texts with a unit, such as ``"3.2s"``, or numbers of seconds. ``vtime_ns`` of an object is exact: write
``f"{moment.vtime_ns}ns"`` for the same vtime again. Vtimes count from power-on.

Processes are named by their process ID, by the name of their first thread, or by a :class:`Process`.

Calls that take long release the global interpreter lock. On the main thread, Ctrl-C ends them; ``digest``, ``fork``, ``judge`` and
``World.root`` finish their work first. Python runs handlers of signals only on the main thread.
"""

from os import PathLike
from typing import Any, Optional, Sequence, Union, final

_Path = Union[str, PathLike[str]]
_Vtime = Union[str, float, int]
_Process = Union[str, int, "Process"]

__all__: list[str]

class EverettError(Exception):
    """Everett could not do what a call asks for. The text is one line."""

class UnmappedError(EverettError):
    """Memory is not mapped. Everett never shows zeros for memory that it cannot read."""

class NoEndError(EverettError):
    """A command did not end within its limit."""

    killed: bool
    """True if it was killed then. False if the node is paused or its agent does not answer: the command goes on."""
    stdout: bytes
    """Standard output so far."""
    stderr: bytes
    """Standard error so far."""

@final
class Finding:
    """A finding: violations of a property with the same signature."""

    @property
    def number(self) -> int:
        """Number, from 1."""
    @property
    def signature(self) -> str:
        """Hash of what is the same in all violations."""
    @property
    def text(self) -> str:
        """Description."""
    @property
    def vtime(self) -> float:
        """Vtime at which it showed first, in seconds."""
    @property
    def vtime_ns(self) -> int:
        """Vtime at which it showed first, in nanoseconds."""
    @property
    def node(self) -> Optional[str]:
        """Node, if it belongs to a single one."""
    @property
    def branch(self) -> int:
        """Number of the first branch that showed it."""
    @property
    def branches(self) -> int:
        """Number of branches that showed it."""
    @property
    def lines(self) -> list[str]:
        """Lines of logs before it."""
    @property
    def messages(self) -> list[str]:
        """Messages on the wire before it."""
    @property
    def faults(self) -> list[str]:
        """Faults before it."""
    # The last one, because it hides the decorator.
    @property
    def property(self) -> str:
        """Name of the violated property."""

@final
class Branch:
    """A recorded branch."""

    @property
    def number(self) -> int:
        """Number, from 0."""
    @property
    def parent(self) -> Optional[int]:
        """Number of the branch that it extends. None if it starts at the root moment."""
    @property
    def path(self) -> str:
        """Forks from the root moment."""
    @property
    def end(self) -> float:
        """Vtime of its end, in seconds."""
    @property
    def end_ns(self) -> int:
        """Vtime of its end, in nanoseconds."""
    @property
    def trail(self) -> str:
        """Digest of its trail."""
    @property
    def checked(self) -> bool:
        """True if the checks ran at its end."""
    @property
    def faults(self) -> int:
        """Number of faults."""
    @property
    def messages(self) -> int:
        """Number of messages between nodes."""
    @property
    def violations(self) -> list[tuple[str, str, int]]:
        """Violations: property, text, and vtime in nanoseconds."""
    @property
    def sometimes(self) -> list[str]:
        """Names of the `sometimes` properties that held."""
    @property
    def broken(self) -> Optional[str]:
        """Why the host could not run it to its end."""

@final
class Run:
    """The run directory of an exploration. ``len(run)`` is the number of its branches."""

    @property
    def nodes(self) -> list[str]:
        """Names of the nodes."""
    @property
    def seed(self) -> int:
        """Seed of the exploration."""
    @property
    def world_file(self) -> str:
        """Path of the world file."""
    @property
    def findings(self) -> list[Finding]:
        """All findings."""
    @property
    def properties(self) -> dict[str, int]:
        """Number of branches that violate each property."""
    def finding(self, number: int) -> Finding:
        """Returns a finding. Raises LookupError if there is none with this number."""
    def branch(self, number: Union[int, str, Branch]) -> Branch:
        """Returns a branch: `17` or `"b17"`. Raises LookupError if there is none with this number."""
    def moment(self, of: Union[int, str, Finding, Branch], at: Optional[_Vtime] = None) -> Moment:
        """Runs a branch again up to a vtime, and returns the moment there.

        `of` is a finding or its number, or a branch or its number as in `"b17"`. Without `at`, the moment is the one at which
        the finding showed, or the end of the branch.
        """
    def root(self) -> Moment:
        """Returns the root moment, at which all services are ready. Its forks have no faults."""
    def __len__(self) -> int: ...

@final
class World:
    """A world file whose services are ready."""

    @property
    def nodes(self) -> list[str]:
        """Names of the nodes."""
    @property
    def seed(self) -> int:
        """Seed."""
    def root(self, plan: str = "") -> Moment:
        """Returns the root moment, at which all services are ready. `plan` is the text of a fault plan for its forks."""

class _Machines:
    """Machines that are read from outside: the common part of moments and forks."""

    @property
    def vtime(self) -> float:
        """Vtime, in seconds."""
    @property
    def vtime_ns(self) -> int:
        """Vtime, in nanoseconds."""
    @property
    def nodes(self) -> list[str]:
        """Names of the nodes."""
    def digest(self) -> str:
        """Returns the digest of the world. Equal digests mean equal machines, disks and wires."""
    def processes(self, node: str) -> list[Process]:
        """Returns the processes of a node."""
    def mappings(self, node: str, process: _Process) -> list[Mapping]:
        """Returns the mappings of a process."""
    def stacks(self, node: str, process: Optional[_Process] = None) -> list[Stack]:
        """Returns the stacks of all threads of a process, or of all processes that run programs."""
    def sockets(self, node: str) -> list[Socket]:
        """Returns the sockets of a node."""
    def files(self, node: str, process: _Process) -> list[OpenFile]:
        """Returns the open files of a process."""
    def memory(self, node: str, process: _Process, address: int, length: int) -> bytes:
        """Returns memory of a process, or of the kernel if `process` is `"kernel"`: at most 64 MiB.

        Raises UnmappedError if a byte is not mapped.
        """
    def value(self, node: str, process: _Process, expression: str) -> Union[int, float, str]:
        """Returns the value of an expression in a process, or in the kernel if `process` is `"kernel"`.

        The syntax is that of ``everett print``: ``"numbers[50]"``, ``"server.port"``, ``"(u64)jiffies"``, ``"$rsp"``.
        Arrays of characters and addresses of characters are texts. One of more than 64 KiB is an error. Raises UnmappedError
        if memory is not mapped,
        LookupError if there is no such variable or member, and ValueError if the syntax is wrong.
        """
    def events(self) -> list[Event]:
        """Returns all events: of a moment from power-on to just before its vtime, of a fork from its beginning."""
    def logs(self, node: Optional[str] = None) -> list[Event]:
        """Returns the lines that programs and kernels have printed. Raises LookupError if there is no such node."""
    def messages(self) -> list[Message]:
        """Returns the outcomes of messages: of a moment from the root moment, of a fork from its beginning.

        Empty acknowledgments, address resolution and frames to no single node are left out.
        """
    def judge(self) -> Judged:
        """Evaluates the properties of the world on these events.

        A moment at which a finding showed stands just before it. The violation is one of the fork that goes on from there.
        """

@final
class Moment(_Machines):
    """An instant of a timeline. It never changes."""

    @property
    def name(self) -> str:
        """Name of the timeline: its identity, the seed and its path."""
    @property
    def ended(self) -> Optional[str]:
        """Why the timeline cannot go on from here. None if it can."""
    @property
    def plan(self) -> str:
        """Fault plan of the timeline. Forks run under it."""
    def fork(self) -> Fork:
        """Makes a fork. Forks in which the same is done are equal to the bit."""

@final
class Fork(_Machines):
    """A timeline that goes on from a moment."""

    def exec(
        self,
        node: str,
        command: Sequence[str],
        *,
        user: Optional[str] = None,
        input: Optional[str] = None,
        limit: Optional[_Vtime] = None,
    ) -> Finished:
        """Runs a command on a node to its end. All machines go on meanwhile.

        `limit` is a vtime after which the command is killed (default: one minute; at most one hour). Raises NoEndError then,
        and also if the node has not killed it 10 s later. A program that kills the command earlier is a negative `returncode`.
        """
    def run_for(self, vtime: _Vtime) -> None:
        """Lets vtime pass: at most one hour."""
    def inject(self, fault: str, *, duration: Optional[_Vtime] = None, **fields: Any) -> int:
        """Injects a fault that begins when the fork goes on, and returns its number.

        `fault`, `duration` (the field `for`) and the other fields are those of a line of a fault plan:
        ``fork.inject("power_loss", node="n1", duration="500ms")``. ``"heal"`` ends all faults.
        """
    def calm(self) -> None:
        """Ends all faults for good, and switches on machines that have no power."""

@final
class Thread:
    """A thread."""

    @property
    def tid(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def state(self) -> str:
        """State, as the letter that /proc/PID/stat shows."""

@final
class Process:
    """A process."""

    @property
    def pid(self) -> int: ...
    @property
    def parent(self) -> int: ...
    @property
    def user(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def state(self) -> str:
        """State, as the letter that /proc/PID/stat shows."""
    @property
    def command(self) -> list[str]:
        """Arguments. Empty for threads of the kernel."""
    @property
    def threads(self) -> list[Thread]: ...

@final
class Mapping:
    """A mapping of a process."""

    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def access(self) -> str:
        """Rights, such as ``"r-xp"``."""
    @property
    def name(self) -> str:
        """Path of the file, or a name such as ``"[heap]"``."""
    @property
    def offset(self) -> Optional[int]:
        """Offset in the file, in bytes."""

@final
class Frame:
    """A frame of a program's stack."""

    @property
    def address(self) -> int: ...
    @property
    def file(self) -> Optional[str]: ...
    @property
    def in_file(self) -> Optional[int]:
        """The address as the file states it."""
    @property
    def function(self) -> Optional[str]: ...
    @property
    def source(self) -> Optional[str]:
        """Place in source code, as ``"FILE:LINE"``."""
    @property
    def text(self) -> str: ...

@final
class Stack:
    """The stack of a thread, the innermost frames first. Its text is one line per frame."""

    @property
    def pid(self) -> int: ...
    @property
    def tid(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def kernel(self) -> list[str]:
        """Frames of the kernel."""
    @property
    def program(self) -> list[Frame]:
        """Frames of the program."""
    @property
    def complete(self) -> bool:
        """True if no further frames exist."""

@final
class Socket:
    """A socket."""

    @property
    def kind(self) -> str:
        """Kind, as ``ss`` prints it: ``"tcp"``, ``"udp"``, ``"u_str"`` and so on."""
    @property
    def state(self) -> str: ...
    @property
    def local(self) -> str: ...
    @property
    def remote(self) -> str: ...
    @property
    def receive_queue(self) -> int: ...
    @property
    def send_queue(self) -> int: ...
    @property
    def retransmits(self) -> int: ...
    @property
    def inode(self) -> int: ...
    @property
    def waits_for_accept(self) -> bool: ...
    @property
    def owners(self) -> list[tuple[str, int, int]]:
        """Processes that have it open: name, process ID and descriptor."""

@final
class OpenFile:
    """An open file."""

    @property
    def fd(self) -> int: ...
    @property
    def kind(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def offset(self) -> int: ...
    @property
    def flags(self) -> int: ...
    @property
    def inode(self) -> int: ...
    @property
    def size(self) -> int: ...

@final
class Event:
    """An event of a timeline."""

    @property
    def vtime(self) -> float: ...
    @property
    def vtime_ns(self) -> int: ...
    @property
    def node(self) -> Optional[str]: ...
    @property
    def kind(self) -> str:
        """Kind: ``"line"``, ``"kernel"``, ``"start"``, ``"exit"``, ``"fault"``, ``"healed"`` and so on."""
    @property
    def unit(self) -> Optional[str]:
        """Program that printed, started or ended: the name of a service, driver, check or test command, or ``"kernel"``."""
    @property
    def text(self) -> Optional[str]:
        """Text, such as the printed line."""
    @property
    def data(self) -> dict[str, Any]:
        """All fields of this kind of event, as ``everett logs --events --json`` prints them."""

@final
class Message:
    """Outcome of a frame on the wire between two nodes."""

    @property
    def vtime(self) -> float: ...
    @property
    def vtime_ns(self) -> int: ...
    @property
    def sent_ns(self) -> int: ...
    @property
    def sender(self) -> str: ...
    @property
    def receiver(self) -> Optional[str]: ...
    @property
    def outcome(self) -> str:
        """``"deliver"``, ``"duplicate"``, ``"drop"`` or ``"timeout"``."""
    @property
    def reason(self) -> Optional[str]:
        """Why the frame was dropped."""
    @property
    def length(self) -> int:
        """Length of the frame, in bytes."""
    @property
    def summary(self) -> str:
        """Protocol, addresses and numbers."""

@final
class Violation:
    """Violation of a property."""

    @property
    def signature(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def vtime(self) -> float: ...
    @property
    def vtime_ns(self) -> int: ...
    @property
    def node(self) -> Optional[str]: ...
    # The last one, because it hides the decorator.
    @property
    def property(self) -> str: ...

@final
class Judged:
    """Verdict of the properties of a world on a timeline."""

    @property
    def violations(self) -> list[Violation]:
        """Violations that no fault excuses."""
    @property
    def sometimes(self) -> list[str]:
        """Names of the `sometimes` properties that held, also before a fork began."""

@final
class Finished:
    """Result of a command."""

    @property
    def returncode(self) -> int:
        """Exit status, or the negative number of the signal that ended the command."""
    @property
    def stdout(self) -> bytes: ...
    @property
    def stderr(self) -> bytes: ...
    @property
    def text(self) -> str:
        """Standard output as text."""
    @property
    def truncated(self) -> bool:
        """True if output is missing: a stream has at most 16 MiB, and a line 128 KiB."""

def open(run_directory: _Path, *, engine: str = "auto", debug_files: Sequence[_Path] = ()) -> Run:
    """Opens a run directory.

    `engine` is `"auto"`, `"soft"` or `"kvm"`. `debug_files` are folders with separate debug files of programs.
    """

def boot(
    world_file: _Path,
    *,
    seed: Optional[int] = None,
    engine: str = "auto",
    debug_files: Sequence[_Path] = (),
) -> World:
    """Boots a world file, or loads its stored boot. Builds the image first if it is not in the cache."""
