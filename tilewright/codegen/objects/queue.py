"""A queue of LLVM modules, compiled to object code by worker processes while the caller emits more.

    with ObjectQueue(target) as queue:
        queue.add("softmax", text)           # as soon as it is emitted
        ...
        objects = queue.finish()             # this process compiles what is left

LLVM takes about as long as everything before it, and holds a lock, so that threads would not help.
A worker process is started only where enough text is queued to pay for its start, or many modules
are expected, and a core is free. This process compiles what a worker fails at: a worker that cannot
be started, dies or refuses a module costs time, never the result. The same text gives the same
object in every process.
"""

from __future__ import annotations

import base64
import logging
from contextlib import ExitStack
from threading import Condition, Thread
from types import TracebackType
from typing import NamedTuple

from tilewright.codegen.objects.compile import compile_object, count_module
from tilewright.codegen.objects.worker import MODULE, encode_target
from tilewright.core.worker.process import WorkerProcess
from tilewright.core.worker.python_command import can_start_python, python_command
from tilewright.core.worker.thread_switching import prompt_switching
from tilewright.target.host import usable_cores
from tilewright.target.target import Target

# Characters of waiting text that are worth a worker: LLVM is busy with them for about as long as a
# process takes to start.
CHARACTERS_PER_WORKER = 250_000
# Modules to come that are worth one as well, and ready with the first of them.
MODULES_WORTH_A_WORKER = 16
MAX_WORKERS = 4
# A module that takes longer than this is hardly the module's fault.
MAX_SECONDS = 3600.0
_PATIENCE = 0.05  # seconds until a process that was killed is looked at again
_LOG = logging.getLogger(__name__)


class Module(NamedTuple):
    """A module in the queue."""

    name: str
    text: str
    optimized: bool


class ObjectQueue:
    """Compiles modules in any order; `most_workers` is how many processes it may start."""

    def __init__(self, target: Target, most_workers: int | None = None) -> None:
        self.target = target
        self.most_workers = _spare_cores() if most_workers is None else most_workers
        self._names: list[str] = []
        self._waiting: list[Module] = []
        self._objects: dict[str, bytes] = {}
        self._complete = False
        self._changed = Condition()
        self._workers: list[_Worker] = []
        self._switching = ExitStack()

    def __enter__(self) -> ObjectQueue:
        self._switching.enter_context(prompt_switching())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._changed:
            self._waiting.clear()
        self._close()
        for worker in self._workers:
            worker.stop()
        self._switching.close()

    def expect(self, modules: int) -> None:
        """Start a worker where so many modules are to come that it will be needed."""
        if modules >= MODULES_WORTH_A_WORKER:
            self._start_worker()

    def add(self, name: str, text: str, optimized: bool = True) -> None:
        """Add a module."""
        self._names.append(name)
        with self._changed:
            self._waiting.append(Module(name, text, optimized))
            self._changed.notify()
            waiting = sum(len(m.text) for m in self._waiting)
        if waiting > CHARACTERS_PER_WORKER * (len(self._workers) + 1):
            self._start_worker()

    def finish(self) -> dict[str, bytes]:
        """The objects of all modules, in the order in which they were added."""
        self._close()
        self._compile_here()
        for worker in self._workers:
            worker.thread.join()
        # What a worker has given back.
        self._compile_here()
        return {name: self._objects[name] for name in self._names}

    def take(self) -> Module | None:
        """The longest module that waits, so that none is left for the end; `None` if none comes."""
        with self._changed:
            while not self._waiting and not self._complete:
                self._changed.wait()
            if not self._waiting:
                return None
            longest = max(range(len(self._waiting)), key=lambda i: len(self._waiting[i].text))
            return self._waiting.pop(longest)

    def give_back(self, module: Module) -> None:
        """A module that a worker did not manage."""
        with self._changed:
            self._waiting.append(module)
            self._changed.notify()

    def put(self, module: Module, code: bytes) -> None:
        """The object of a module."""
        self._objects[module.name] = code

    def _close(self) -> None:
        with self._changed:
            self._complete = True
            self._changed.notify_all()

    def _compile_here(self) -> None:
        while (module := self.take()) is not None:
            self.put(module, compile_object(module.text, self.target, module.optimized))

    def _start_worker(self) -> None:
        if len(self._workers) < self.most_workers:
            self._workers.append(_Worker(self))


class _Worker:
    """A process, and the thread that feeds it."""

    def __init__(self, queue: ObjectQueue) -> None:
        self.queue = queue
        self.process = WorkerProcess(python_command(MODULE), starts=1)
        self.thread = Thread(target=self._feed, daemon=True)
        self.thread.start()

    def stop(self) -> None:
        """End the process, whatever it is doing."""
        while self.thread.is_alive():
            self.process.kill()  # which the thread takes for a failure
            self.thread.join(_PATIENCE)
        self.process.close()

    def _feed(self) -> None:
        """Give the process one module after another until there are no more, or it fails."""
        target = encode_target(self.queue.target)
        self.process.start()
        while (module := self.queue.take()) is not None:
            request = {"target": target, "text": module.text, "optimized": module.optimized}
            answer = self.process.ask(request, MAX_SECONDS)
            if answer.failure:
                _LOG.debug("%s is compiled in this process: %s", module.name, answer.failure)
                self.queue.give_back(module)
                return
            count_module()
            self.queue.put(module, base64.b64decode(answer.reply["code"]))


def _spare_cores() -> int:
    """How many processes may run beside this one; 0 where Python is part of another program."""
    return min(usable_cores() - 1, MAX_WORKERS) if can_start_python() else 0
