"""A Chromium without a window, and axe-core in it.

`python -m tests.report.browser PAGE` prints the bytes of a page and the time from its navigation to the moment at which
its first view is shown and answers.
"""

from __future__ import annotations

import importlib.util
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

PATIENCE = 20.0
"""Seconds after which something that should happen on a page is missed."""


def missing() -> str:
    """What the tests in a browser lack here; empty where it is all there."""
    programs = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    modules = [name for name in ("selenium", "axe_playwright_python") if importlib.util.find_spec(name) is None]
    if not programs and not modules:
        return ""
    return f"no {', no '.join([*programs, *modules])}: the extra `browser`, chromium and chromedriver are needed"


@cache
def _axe() -> str:
    """The script of axe-core: this package has the newest of those on PyPI; its Playwright is not used."""
    spec = importlib.util.find_spec("axe_playwright_python")
    assert spec is not None
    assert spec.origin is not None
    return (Path(spec.origin).parent / "axe.min.js").read_text("utf-8")


@dataclass(frozen=True)
class Browser:
    """A browser with one page."""

    driver: Any

    def look(self, width: int = 1280, height: int = 800, scheme: str = "light") -> None:
        """Take another size and scheme of colours."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def open(self, page: Path, view: str = "") -> None:
        """Open a page anew and wait until it can be used."""
        self.driver.get("about:blank")
        self.driver.get(f"{page.as_uri()}{view}")
        self.until(lambda: self.script("return document.documentElement.dataset.ready"), "the page was never ready")
        assert not self.messages()

    def go(self, view: str) -> None:
        """Go to a view of the page."""
        self.script("location.hash = arguments[0]", view)
        name = view.removeprefix("#/").removeprefix("2/").split("/")[0]
        self.until(lambda: self.script("return document.body.dataset.view") == name, f"{view} was never shown")

    def script(self, text: str, *arguments: Any) -> Any:
        """What a script gives."""
        return self.driver.execute_script(text, *arguments)

    def text(self, selector: str) -> str:
        """The text of the first element that a selector finds."""
        return str(self.script("return document.querySelector(arguments[0])?.textContent ?? ''", selector))

    def texts(self, selector: str) -> list[str]:
        """The texts of all elements that a selector finds."""
        return list(
            self.script("return [...document.querySelectorAll(arguments[0])].map(e => e.textContent)", selector)
        )

    def click(self, selector: str) -> None:
        """Click where the first element that a selector finds is."""
        self.driver.find_element("css selector", selector).click()

    def type(self, *keys: str) -> None:
        """Type where the focus is."""
        self.driver.switch_to.active_element.send_keys(*keys)

    def until(self, holds: Callable[[], Any], otherwise: str) -> None:
        """Wait until something holds; else the test fails."""
        end = time.monotonic() + PATIENCE
        while not holds():
            assert time.monotonic() < end, otherwise
            time.sleep(0.02)

    def messages(self) -> list[str]:
        """What the page wrote on the console since this was asked last."""
        return [one["message"] for one in self.driver.get_log("browser")]

    def violations(self) -> list[str]:
        """What axe-core has against the page as it is shown."""
        self.script(_axe())
        found = self.driver.execute_async_script("const done = arguments[0]; axe.run().then(done)")
        return [
            f"{one['id']}: {node['html'][:200]} {node['any']}" for one in found["violations"] for node in one["nodes"]
        ]


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser that ends with the block."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        yield Browser(driver)
    finally:
        driver.quit()


LOADS = 7


def main(page: Path) -> None:
    """Print the size of a page and the median time until it is interactive."""
    with browser() as window:
        window.look()
        times = []
        for _ in range(LOADS):
            window.open(page)
            times.append(int(window.script("return document.documentElement.dataset.ready")))
    print(
        f"{page.stat().st_size} bytes; interactive after {statistics.median(times)} ms ({min(times)} to {max(times)})"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
