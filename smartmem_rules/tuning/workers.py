"""Who measures: this process, or the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from smartmem_rules.tuning.database import TuningError
from smartmem_rules.tuning.measure import Job, Measured, measure


class Workers(Protocol):
    """Measure jobs; `width` of them at once."""

    width: int

    def measure(self, jobs: Sequence[Job]) -> list[Measured]:
        """The results in the order of the jobs."""


class LocalWorker:
    """This process: one measurement at a time, because two would disturb each other."""

    width = 1

    def measure(self, jobs: Sequence[Job]) -> list[Measured]:
        """The results in the order of the jobs."""
        return [measure(job) for job in jobs]


class DaskWorkers:
    """The workers of a Dask scheduler, one job at a time on each.

    Raises:
        TuningError: the package is missing, or nobody answers at the address.
    """

    def __init__(self, address: str, timeout: float = 5.0) -> None:
        try:
            from distributed import Client
        except ImportError:
            raise TuningError("--scheduler needs the package distributed: pip install 'smartmem-rules[dask]'") from None
        try:
            self._client: Any = Client(address, timeout=timeout, set_as_default=False)  # type: ignore[no-untyped-call]
            workers = self._client.scheduler_info(n_workers=-1)["workers"]
        except (OSError, ValueError, TimeoutError) as error:
            raise TuningError(f"{address}: no Dask scheduler answers there ({error})") from error
        if not workers:
            raise TuningError(f"{address}: the Dask scheduler has no workers; start one with `dask worker {address}`")
        self._addresses = list(workers)
        self.width = len(self._addresses)

    def measure(self, jobs: Sequence[Job]) -> list[Measured]:
        """The results in the order of the jobs."""
        futures = [
            self._client.submit(measure, job, workers=[address], pure=False)
            for job, address in zip(jobs, self._addresses, strict=False)
        ]
        try:
            return list(self._client.gather(futures))
        except KeyboardInterrupt:
            self._client.cancel(futures)
            raise

    def close(self) -> None:
        """Leave the cluster."""
        self._client.close()
