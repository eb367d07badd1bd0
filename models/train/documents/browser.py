"""A headless Chromium that opens files, in looks of many kinds, and tells what is where."""

import base64
import pathlib

from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.chrome.service import Service

BOXES = (pathlib.Path(__file__).parent / "boxes.js").read_text()
_LOADED = """
const done = arguments[arguments.length - 1], waiting = [...document.images].filter(one => !one.complete);
const all = Promise.all([document.fonts.ready, ...waiting.map(
    one => new Promise(next => { one.onload = one.onerror = next; }))]);
Promise.race([all, new Promise(next => setTimeout(next, 1200))]).then(() => done(true));
"""
_STYLE = """
const style = document.createElement("style");
style.textContent = arguments[0];
document.head.append(style);
"""


class Browser:
    """One browser; not for threads."""

    def __init__(self):
        options = webdriver.ChromeOptions()
        options.page_load_strategy = "eager"
        for switch in ("headless=new", "no-sandbox", "disable-gpu", "hide-scrollbars", "disable-dev-shm-usage",
                       "allow-file-access-from-files", "disable-extensions", "mute-audio",
                       "host-resolver-rules=MAP * ~NOTFOUND"):  # Pages show what their package holds.
            options.add_argument(f"--{switch}")
        options.binary_location = "/usr/bin/chromium"
        self.driver = webdriver.Chrome(options, Service("/usr/bin/chromedriver"))
        self.driver.set_page_load_timeout(15)
        self.driver.set_script_timeout(15)

    def close(self):
        self.driver.quit()

    def open(self, path, look, most):
        """Opens a file as wide as the look says and at most `most` pixels of the picture high; (JPEG of its upper
        part, pixels of the picture to one of the page, boxes.js's answer), or None where there is little to see."""
        width, scale, tall = look.width, look.pixels / look.width, round(most * look.width / look.pixels)
        try:
            self._size(width, 900, scale)
            self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print" if look.print else "screen"})
            self.driver.get(path.resolve().as_uri())
            self.driver.execute_script(_STYLE, look.css)
            self.driver.execute_async_script(_LOADED)
            high = min(tall, self.driver.execute_script("return document.documentElement.scrollHeight"))
            self._size(width, high, scale)
            found = self.driver.execute_script(BOXES)
            if found["width"] > width * 1.03 or not found["parts"]:
                return None  # Parts beyond the right edge.
            shot = self.driver.execute_cdp_cmd("Page.captureScreenshot", {
                "format": "jpeg", "quality": 92, "captureBeyondViewport": True,
                "clip": {"x": 0, "y": 0, "width": width, "height": high, "scale": 1}})
        except WebDriverException as error:
            print(f"{path}: {str(error).splitlines()[0]}", flush=True)
            return None
        return base64.b64decode(shot["data"]), scale, found

    def _size(self, width, height, scale):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": max(200, height), "deviceScaleFactor": scale, "mobile": False})
