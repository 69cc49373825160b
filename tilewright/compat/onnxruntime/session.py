"""`InferenceSession`: a model that runs, as applications of ONNX Runtime hold it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright.compat.onnxruntime.feeds import check_names, checked_feed
from tilewright.compat.onnxruntime.iobinding import IOBinding
from tilewright.compat.onnxruntime.model import ModelMetadata, OpenedModel
from tilewright.compat.onnxruntime.model_variants import ModelVariants, as_sequence
from tilewright.compat.onnxruntime.options import RunOptions, SessionOptions
from tilewright.compat.onnxruntime.profiling import SessionTrace
from tilewright.compat.onnxruntime.providers import Given, Options, chosen_providers
from tilewright.compat.onnxruntime.shapes import known_output
from tilewright.compat.onnxruntime.status import STATUS, Fail, InvalidArgument, error
from tilewright.compat.onnxruntime.types import NodeArg
from tilewright.compat.onnxruntime.values import OrtValue, result_type
from tilewright.core.errors import Error

_FALLBACK = ["CPUExecutionProvider"]
_REPORTED: tuple[type[Exception], ...] = (*STATUS, RuntimeError, TypeError, ValueError)
_FAILURES: tuple[type[Exception], ...] = (*STATUS, ValueError)


class InferenceSession:
    """A model, compiled when the session is made, or taken from the compile cache."""

    def __init__(
        self,
        path_or_bytes: str | bytes | os.PathLike[str],
        sess_options: SessionOptions | None = None,
        providers: Given = None,
        provider_options: Options = None,
        **kwargs: Any,
    ) -> None:
        if isinstance(path_or_bytes, str | os.PathLike):
            self._model_path: str | None = os.fspath(path_or_bytes)
            self._model_bytes: bytes | None = None
        elif isinstance(path_or_bytes, bytes):
            self._model_path, self._model_bytes = None, path_or_bytes
        else:
            raise TypeError(f"Unable to load from type '{type(path_or_bytes)}'")
        if not isinstance(sess_options, SessionOptions | None):
            raise TypeError(
                "__init__(): incompatible constructor arguments: sess_options must be a "
                f"SessionOptions, not {sess_options!r}"
            )
        self._sess_options = sess_options or SessionOptions()
        self._enable_fallback = int(kwargs.get("enable_fallback", 1)) == 1
        self.set_providers(providers, provider_options)
        self._open(self._sess_options)

    def _open(self, options: SessionOptions) -> None:
        if options.log_severity_level not in range(-1, 5):
            raise RuntimeError(
                "Invalid session log severity level. Not a valid onnxruntime::logging::Severity "
                f"value: {options.log_severity_level}"
            )
        begin = time.perf_counter_ns()
        self._trace = (
            SessionTrace(options.profile_file_prefix) if options.enable_profiling else None
        )
        source = self._model_path if self._model_bytes is None else self._model_bytes
        assert source is not None
        model = OpenedModel(source, options._initializers, options._sizes)
        self._model = model
        threads = options.intra_op_num_threads
        self._engine = ModelVariants(model, threads if threads > 0 else None)
        if options.optimized_model_filepath:
            model.save(options.optimized_model_filepath)
        self._inputs_meta = [d.node_arg() for d in model.inputs]
        self._outputs_meta = [known_output(d, model, self._engine.direct) for d in model.outputs]
        self._overridable = [d.node_arg() for d in model.overridable]
        self._known = {d.name: d for d in [*model.inputs, *model.overridable]}
        self._input_names = [d.name for d in model.inputs]
        self._positions = {d.name: i for i, d in enumerate(model.outputs)}
        # Tensors of numbers go straight to the compiled model, which checks them itself.
        self._plain = all(
            d.kind == "tensor_type" and d.text != "tensor(string)" for d in model.inputs
        )
        self._note("model_loading", begin)

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None = None,
    ) -> list[Any]:
        """The outputs that are named, or all: arrays, lists, dictionaries; `None` if empty."""
        if run_options is None and self._trace is None and self._plain:
            found = self._run_directly(input_feed)
            if found is not None and not output_names:
                return list(found)
            if found is not None:
                return [found[i] for i in self._wanted(output_names)]
        _check_options(run_options)
        return self._values(output_names, input_feed)

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        callback: Callable[[Sequence[Any], Any, str], None],
        user_data: Any,
        run_options: RunOptions | None = None,
    ) -> None:
        """Run in a thread of its own and hand the outputs, or what went wrong, to `callback`."""
        check_names(self._model.inputs, input_feed)

        def work() -> None:
            try:
                outputs, failure = self.run(output_names, input_feed, run_options), ""
            except _REPORTED as cause:
                outputs, failure = [], str(cause)
            callback(outputs, user_data, failure)

        threading.Thread(target=work, daemon=True).start()

    def run_with_ort_values(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, OrtValue],
        run_options: RunOptions | None = None,
    ) -> list[OrtValue]:
        """As `run`, from and to `OrtValue`s."""
        _check_options(run_options)
        feed = {name: value._get_c_value() for name, value in input_dict_ort_values.items()}
        found = self._values(output_names, feed)
        outputs = [self._model.outputs[i] for i in self._wanted(output_names)]
        pairs = zip(found, outputs, strict=True)
        return [OrtValue.of_result(v, result_type(v, d.type)) for v, d in pairs]

    def run_with_iobinding(
        self, iobinding: IOBinding, run_options: RunOptions | None = None
    ) -> None:
        """Run on what is bound."""
        if iobinding._session is not self:
            raise ValueError("IOBinding must be used with the session that created it.")
        _check_options(run_options)
        try:
            iobinding.run()
        except _FAILURES as cause:
            text = str(cause).split(" : ", 3)[-1]
            raise RuntimeError(f"Error in execution: {text}") from cause

    def io_binding(self) -> IOBinding:
        """A new binding for this session."""
        return IOBinding(self)

    def get_inputs(self) -> list[NodeArg]:
        """The inputs, without initializers."""
        return self._inputs_meta

    def get_outputs(self) -> list[NodeArg]:
        """The outputs."""
        return self._outputs_meta

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Initializers for which a feed may give other values."""
        return self._overridable

    def get_modelmeta(self) -> ModelMetadata:
        """What the model says of itself."""
        return self._model.meta

    def get_session_options(self) -> SessionOptions:
        """The options that the session was made with."""
        return self._sess_options

    def get_providers(self) -> list[str]:
        """The providers in use."""
        return list(self._providers)

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """The providers in use, with their options."""
        return self._providers

    def set_providers(self, providers: Given = None, provider_options: Options = None) -> None:
        """Choose providers; whatever is chosen, the processor runs the model."""
        try:
            self._providers = chosen_providers(providers, provider_options)
        except ValueError as cause:
            if not self._enable_fallback:
                raise
            print("*************** EP Error ***************")
            print(f"EP Error {cause} when using {providers}")
            print(f"Falling back to {_FALLBACK} and retrying.")
            print("****************************************")
            self._providers = chosen_providers(None, None)

    def disable_fallback(self) -> None:
        """From now on a wrong provider is an error."""
        self._enable_fallback = False

    def enable_fallback(self) -> None:
        """From now on a wrong provider is answered with the processor."""
        self._enable_fallback = True

    def end_profiling(self) -> str:
        """Write the profile; the name of its file, or nothing if none was asked for."""
        return "" if self._trace is None else self._trace.write()

    def get_profiling_start_time_ns(self) -> int:
        """When profiling began."""
        return 0 if self._trace is None else self._trace.start_ns

    def _run_directly(self, feed: Mapping[str, Any]) -> Sequence[Any] | None:
        """The outputs, if the feed is as the compiled model takes it."""
        names = self._input_names
        if len(feed) != len(names):
            return None
        try:
            return as_sequence(self._engine.direct(*[feed[name] for name in names]))
        except (KeyError, TypeError, Error):
            return None  # the long way says what is wrong, or finds another form of the model

    def _values(self, output_names: Sequence[str] | None, feed: Mapping[str, Any]) -> list[Any]:
        """The outputs that are named, the feed checked in full."""
        begin = time.perf_counter_ns()
        check_names(self._model.inputs, feed)
        values = checked_feed(self._known, feed)
        wanted = self._wanted(output_names)
        found = self._engine.run(values)
        self._note("model_run", begin)
        return [found[i] for i in wanted]

    def _wanted(self, names: Sequence[str] | None) -> Sequence[int]:
        """The positions of outputs by name."""
        if not names:
            return range(len(self._positions))
        if isinstance(names, str):
            raise TypeError(
                "run(): incompatible function arguments: output_names must be a sequence of str, "
                f"not {names!r}"
            )
        for name in names:
            if name not in self._positions:
                raise error(InvalidArgument, f"Invalid output name:{name}")
        return [self._positions[name] for name in names]

    def _note(self, what: str, begin: int) -> None:
        if self._trace is not None:
            self._trace.add(what, begin)


def _check_options(options: RunOptions | None) -> None:
    if options is None:
        return
    if not isinstance(options, RunOptions):
        raise TypeError(
            "run(): incompatible function arguments: run_options must be RunOptions, "
            f"not {options!r}"
        )
    if options.terminate:
        raise error(Fail, "Exiting due to terminate flag being set to true.")
