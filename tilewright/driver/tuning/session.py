"""A tuning session: tasks, search, measurement and records, from a model to tuned schedules.

    with Records(path) as records:
        report = TuningSession(model, records, SearchSettings(trials=512)).run()

What is in the records counts: the same session again measures nothing twice and goes on where the
last one ended, however it ended. An interrupt ends the search; what it found is still compared with
the built-in schedules, for a while. A second one ends that as well, and the report has what is
known by then.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from tilewright.core.errors import ExecutionError, TuneError
from tilewright.core.worker.process import Limits
from tilewright.driver.tuning.budget import Budget
from tilewright.driver.tuning.end_to_end import Latency, TuningModel, WholeModel
from tilewright.driver.tuning.extract_tasks import Extraction, TuningTask, extract_tasks
from tilewright.driver.tuning.model_schedules import ModelSchedules
from tilewright.driver.tuning.task_files import write_task
from tilewright.driver.tuning.task_search import RecordWriter, TaskSearch
from tilewright.driver.tuning.unchecked_space import UncheckedSpace
from tilewright.driver.tuning.validate import decide, finalists, rejected, winner
from tilewright.runtime.profile import KernelTime
from tilewright.target.gpu import GpuTarget
from tilewright.target.host import host
from tilewright.tune.candidate import Result
from tilewright.tune.measure.job import Job
from tilewright.tune.measure.measurer import Measurer, Measures, MeasureSettings
from tilewright.tune.measure.scratch_dir import scratch_folder
from tilewright.tune.method import SearchMethod
from tilewright.tune.records import Records
from tilewright.tune.space.table import SCHEDULE_SPACES
from tilewright.tune.target_key import target_text, versions
from tilewright.tune.task_scheduler.table import TASK_SCHEDULERS
from tilewright.tune.task_scheduler.task_scheduler import Task, TaskScheduler
from tilewright.tune.tuned_schedules import NO_DIFFERENCE, SLOWER

_LOG = logging.getLogger(__name__)
BUILD_WORKER = (sys.executable, "-m", "tilewright.driver.tuning.build_worker")
# The driver of a GPU takes more of a process's memory than a model does, and assembles kernels as
# it loads them.
GPU_MEASURING = MeasureSettings(
    run_seconds=20.0, load_seconds=180.0, limits=Limits(memory=64 << 30)
)
OpenMeasurer = Callable[[MeasureSettings], AbstractContextManager[Measures]]


def measure_here(settings: MeasureSettings) -> AbstractContextManager[Measures]:
    """Measure with processes of this machine."""
    return Measurer(BUILD_WORKER, settings)


@dataclass(frozen=True)
class SearchSettings:
    """How to search: trials in all, those of earlier sessions included, or seconds, or both."""

    trials: int | None = None
    budget: float | None = None
    batch: int = 16
    method: SearchMethod = field(default_factory=lambda: SearchMethod("evolutionary", "ridge"))
    scheduler: str = "gradient"
    space: str = "constructed"
    seed: int = 0
    cold: bool = False
    # Whether traces are checked with isl before they are built; results are compared in any case.
    checked: bool = True


def tasks_of(model: TuningModel, settings: SearchSettings) -> Extraction:
    """The kernels of a model that can be tuned."""
    return extract_tasks(
        model.source, model.target, model.dims, model.precision, model.sizes, settings.seed
    )


@dataclass
class TuningReport:
    """What came of a session."""

    searches: list[TaskSearch] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    seconds: float = 0.0
    interrupted: bool = False
    # Whether the comparisons with the built-in schedules were interrupted as well.
    undecided: bool = False
    latency: Latency | None = None

    @property
    def trials(self) -> int:
        """All that was ever measured of these tasks under these conditions."""
        return sum(search.trials for search in self.searches)


class TuningSession:
    """One run of the tuner; `show` is called after every event.

    `open_measurer` opens a measurer: once for the search, once for the comparisons after it.
    `tasks` are those of the model, if they were extracted already.
    """

    def __init__(
        self,
        model: TuningModel,
        records: Records,
        settings: SearchSettings,
        show: Callable[[TuningSession], object] = lambda session: None,
        open_measurer: OpenMeasurer = measure_here,
        tasks: Extraction | None = None,
    ) -> None:
        if settings.trials is None and settings.budget is None:
            raise TuneError("tune.endless", "neither trials nor a budget of time is given")
        self.model = model
        self.records = records
        self.settings = settings
        self.show = show
        self.open_measurer = open_measurer
        self.report = TuningReport()
        self.budget = Budget(settings.trials, settings.budget, settings.batch)
        self._now("finding the kernels of the model")
        tasks = tasks or tasks_of(model, settings)
        conditions = [("threads", str(model.threads)), ("cold", str(settings.cold))]
        self.writer = RecordWriter(
            records, target_text(model.target), versions(model.target), tuple(conditions)
        )
        self.report.searches = [self._search_of(task) for task in tasks.tasks]
        self.report.skipped = tasks.skipped
        self._jobs: dict[str, Job] = {}

    def _search_of(self, task: TuningTask) -> TaskSearch:
        scheduled, settings = task.scheduled, self.settings
        make = SCHEDULE_SPACES.get(settings.space)
        space = make(scheduled.func, scheduled.constants, self.model.target)
        strategy = settings.method.start(UncheckedSpace(space), settings.seed)
        return TaskSearch(task, space, strategy, self.writer, self._on_result)

    def _on_result(self, search: TaskSearch, result: Result) -> None:
        self._now(f"searching {search.task.about.name}")

    def _now(self, doing: str) -> None:
        self.doing = doing
        self.show(self)

    @property
    def left(self) -> float:
        """Seconds until the search ends, as far as can be told."""
        return self.budget.left(self.report.trials)

    def run(self) -> TuningReport:
        """Search, compare, check the model as a whole."""
        with ExitStack() as stack:
            folder = stack.enter_context(scratch_folder())
            whole = WholeModel(self.model, folder)
            try:
                scheduler = self._scheduler(whole)
                with self._measurer() as measurer:
                    self._search(scheduler, measurer, folder)
            except KeyboardInterrupt:
                self.report.interrupted = True
            self.budget.begin_comparisons()
            try:
                with self._measurer() as measurer:
                    self._decide(measurer, folder)
                    self._check_model(whole, measurer)
            except KeyboardInterrupt:
                self.report.interrupted = self.report.undecided = True
        self.report.seconds = self.budget.elapsed
        _LOG.info("tuned in %.0f s: %d trials", self.report.seconds, self.report.trials)
        return self.report

    def _measurer(self) -> AbstractContextManager[Measures]:
        target, seconds = self.model.target, self.budget.comparison_seconds
        if isinstance(target, GpuTarget):
            return self.open_measurer(
                replace(GPU_MEASURING, builders=host().cores, model_seconds=seconds)
            )
        return self.open_measurer(MeasureSettings(builders=target.cores, model_seconds=seconds))

    def _job(self, search: TaskSearch, folder: Path) -> Job | None:
        """The files of a task; none where sizes were taken that its kernel is not for."""
        task, target = search.task, self.model.target
        if task.workload not in self._jobs:
            settings, threads = self.settings, self.model.threads
            place = folder / task.workload
            try:
                job = write_task(place, task, target, threads, settings.cold, settings.checked)
            except ExecutionError as error:
                search.problem = error.message
                return None
            self._jobs[task.workload] = job
        return self._jobs[task.workload]

    def _scheduler(self, whole: WholeModel) -> TaskScheduler:
        """The task scheduler, with the time and the roofline bound of each kernel from a run."""
        searches = self.report.searches
        make = TASK_SCHEDULERS.get(self.settings.scheduler)
        if self._allowed() <= 0:
            return make([search.task.about for search in searches])
        self._now("timing the kernels in the model")
        times = whole.kernel_times()
        scheduler = make([_with_bound(search.task, times) for search in searches])
        for number, search in enumerate(searches):
            task = search.task
            if search.trials:
                scheduler.observe(number, search.best, finished=bool(search.problem))
            elif task.kernels <= times.keys():
                seconds = sum(times[name].least for name in task.kernels) * 1e-9
                scheduler.observe(number, seconds / task.about.weight)
        return scheduler

    def _search(self, scheduler: TaskScheduler, measurer: Measures, folder: Path) -> None:
        searches = self.report.searches
        self.budget.begin(self.report.trials)
        while (wanted := self._allowed()) > 0 and (chosen := scheduler.next_task()) is not None:
            search = searches[chosen]
            job = self._job(search, folder)
            begin = time.monotonic()
            more = job is not None and search.round(measurer, job, wanted)
            seconds = time.monotonic() - begin
            scheduler.observe(chosen, search.best, finished=not more, seconds=seconds)
            _LOG.info("%s", search)

    def _allowed(self) -> int:
        """How many trials the next batch may have."""
        waiting = sum(bool(finalists(search)) for search in self.report.searches)
        return self.budget.allowed(self.report.trials, waiting)

    def _decide(self, measurer: Measures, folder: Path) -> None:
        """Compare the best of each task with the built-in schedule, what promises most first.

        What there is no time for is left to a later session.
        """
        open_searches = [s for s in sorted(self.report.searches, key=_promise) if finalists(s)]
        for number, search in enumerate(open_searches):
            if number and self.budget.is_late:
                break
            self._now(f"comparing {search.task.about.name} with the built-in schedule")
            job = self._job(search, folder)
            if job is not None:
                decide(search, measurer, job)

    def _check_model(self, whole: WholeModel, measurer: Measures) -> None:
        """Measure the model before and after; what does not make it faster is not used.

        A kernel alone finds its operands in other caches than in a model. Of schedules that were
        faster alone and not together, the half with the least expected gain is given up, until the
        rest is faster or the time for comparisons is over. Those that were faster together before
        are not measured again.
        """
        won = [(search, winner(search)) for search in sorted(self.report.searches, key=_promise)]
        used = [(search, found[0]) for search, found in won if found is not None]
        while used:
            traces = {search.task.workload: trace for search, trace in used}
            schedules = ModelSchedules(self.model, self.writer, self.report.searches, traces)
            self.report.latency = latency = schedules.latency(
                partial(self._compare, whole, measurer)
            )
            if latency.result not in (NO_DIFFERENCE, SLOWER):
                return
            kept = 0 if self.budget.is_over else len(used) // 2
            for search, trace in used[kept:]:
                self.writer.add(search.task, rejected(search, trace, latency.result))
            used = used[:kept]

    def _compare(self, whole: WholeModel, measurer: Measures) -> Latency:
        self._now("comparing the model before and after")
        return whole.compare(self.records.path, measurer)


def _with_bound(task: TuningTask, times: Mapping[str, KernelTime]) -> Task:
    """A task for a scheduler, with the roofline bound of its kernels."""
    bounds = [times[name].bound for name in task.kernels & times.keys()]
    least = sum(bound.seconds for bound in bounds if bound is not None)
    return replace(task.about, least_seconds=least / task.about.weight)


def _promise(search: TaskSearch) -> float:
    """The seconds that a model would gain, below zero: what promises most comes first."""
    return search.task.about.weight * (search.best - search.builtin)
