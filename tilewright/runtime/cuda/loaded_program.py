"""What a model has on a GPU however it is called: code, weights, the words of its checks."""

from __future__ import annotations

from tilewright.core.errors import ExecutionError
from tilewright.runtime.container import Container
from tilewright.runtime.cuda.driver import Driver
from tilewright.runtime.cuda.status_words import StatusWords
from tilewright.runtime.host_memory import address


class LoadedProgram:
    """Functions by name, the address of the weights, and a stream of the model's own."""

    def __init__(self, driver: Driver, container: Container) -> None:
        manifest = container.manifest
        check_device(manifest["target"]["cpu"], driver)
        self._driver = driver
        self._container = container
        self._modules: list[int] = []
        self.functions: dict[str, int] = {}
        self.weights = self.stream = 0
        self.status: StatusWords | None = None
        try:
            self._load()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Free all of it."""
        driver = self._driver
        if self.weights:
            driver.free(self.weights)
        if self.stream:
            driver.destroy_stream(self.stream)
        if self.status is not None:
            self.status.close()
        for module in self._modules:
            driver.unload_module(module)
        self._modules, self.weights, self.stream, self.status = [], 0, 0, None

    def _load(self) -> None:
        driver, program = self._driver, self._container.manifest["program"]
        for name, kernel in program["kernels"].items():
            module = driver.load_module(self._container.objects[name], name)
            self._modules.append(module)
            for launch in kernel["launches"]:
                name, shared = launch["name"], launch["shared"]
                self.functions[name] = driver.function(module, name, launch["pdl"])
                if shared:
                    driver.set_max_dynamic_shared(self.functions[name], shared, name)
                if launch["shared_carveout"]:
                    driver.set_shared_carveout(self.functions[name], name)
                if launch["cooperative"]:
                    driver.set_cooperative(self.functions[name])
        self.status = StatusWords(driver, program.get("status_bytes", 0))
        weights = self._container.weights
        self.stream = driver.create_stream()
        self.weights = driver.allocate(weights.nbytes)
        if weights.nbytes:
            driver.upload(self.weights, address(weights), weights.nbytes, self.stream)
        driver.synchronize(self.stream, "bringing the weights to the GPU")


def check_device(arch: str, driver: Driver) -> None:
    """Refuse a GPU that cannot run code for an architecture, such as `sm_90a`."""
    digits = arch.removeprefix("sm_").rstrip("af")
    wanted, have = (int(digits[:-1]), int(digits[-1])), driver.capability()
    exact = not arch[-1].isdigit()
    if have != wanted if exact else have < wanted:
        raise ExecutionError(
            "cuda.architecture",
            f"the model was compiled for {arch}, this machine's {driver.name()} is "
            f"sm_{have[0]}{have[1]}",
            help=f'compile it with target="cuda -arch=sm_{have[0]}{have[1]}"',
        )
