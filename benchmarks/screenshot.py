"""README's picture of the dashboard: `python -m benchmarks.screenshot` runs the demo in a browser.

It also stores how many seconds after the command the first change is named on the dashboard, in
docs/results/demo.csv. The cache of compiled code is empty when it begins, as on a new machine.
Needs Chromium, its driver and selenium, as the tests of pages do.
"""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.tables import RESULTS, report

PORT, LIMIT, SETTLE = 8177, 180.0, 40.0  # seconds until a change is named; until it has recovered
FIGURE = "command to the first change named on the dashboard, compiling included: s"
WIDTH, HEIGHT = 1280, 1180
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars")
NAMED = "return latest && latest.happened.length && document.getElementById('moved').innerText"


def browser(folder: str) -> Any:
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in (*FLAGS, f"--user-data-dir={folder}"):
        options.add_argument(flag)
    driver = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    return driver


def named_after(driver: Any, begun: float) -> float:
    """Open the dashboard as soon as it answers, and wait until it names the first change."""
    url = f"http://127.0.0.1:{PORT}/"
    while True:
        with suppress(OSError):
            urllib.request.urlopen(f"{url}healthz", timeout=2).close()
            break
        time.sleep(0.5)
    driver.get(url)
    while time.monotonic() - begun < LIMIT:
        if driver.execute_script(NAMED):
            return time.monotonic() - begun
        time.sleep(0.5)
    raise TimeoutError(f"no change was named within {LIMIT:.0f} seconds")


def shoot(driver: Any, theme: str) -> Path:
    scheme = [{"name": "prefers-color-scheme", "value": theme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
    time.sleep(1.0)
    shot = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
    path = RESULTS / f"dashboard-{theme}.png"
    path.write_bytes(base64.b64decode(shot["data"]))
    return path


def main() -> None:
    command = [sys.executable, "-m", "driftbandit", "demo", "--port", str(PORT), "--no-browser"]
    with tempfile.TemporaryDirectory() as folder:
        begun, env = time.monotonic(), os.environ | {"NUMBA_CACHE_DIR": f"{folder}/cache"}
        shop = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=env)
        driver = browser(f"{folder}/profile")
        try:
            named = named_after(driver, begun)
            report("The demo", [(FIGURE, named, f"<= {LIMIT:.0f}", True)], RESULTS / "demo.csv")
            time.sleep(SETTLE)
            print(*(shoot(driver, theme) for theme in ("light", "dark")), sep="\n")
        finally:
            driver.quit()
            shop.terminate()
            shop.wait(30)


if __name__ == "__main__":
    main()
