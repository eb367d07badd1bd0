"""The console in headless Chromium: every tab used, at two widths, light and dark, checked by axe.

Needs chromium and chromedriver on the path and the Python packages of tests/browser/requirements.txt
(tests/run.sh --slow installs both). With LONGVIEW_SCREENSHOTS=FOLDER pictures of all tabs go there."""

import os
import pathlib
import shutil
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

from server_process import GOLDEN, ZOO, Server  # noqa: E402

webdriver = pytest.importorskip("selenium.webdriver", reason="no selenium")
axe_selenium = pytest.importorskip("axe_selenium_python", reason="no axe")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (shutil.which("chromium") and shutil.which("chromedriver")),
                       reason="no chromium with chromedriver on the path"),
]
WIDTHS = {"wide": (1100, 900), "narrow": (390, 840)}
SCREENSHOTS = os.environ.get("LONGVIEW_SCREENSHOTS")
# Tab -> what its answer shows.
ANSWERS = {
    "classify": "table", "tags": "table", "question": "table", "fill-mask": "table",
    "embed": "table", "picture": "table", "generate": ".output", "estimate": ".card",
}


@pytest.fixture(scope="module")
def server():
    models = {name: ZOO / name for name in ("code-language", "code-lm", "page-layout", "page-type")}
    for name, case in {"reader": "longformer/text_question_answering",
                       "masks": "longformer/text_fill_mask",
                       "reranker": "sentence_transformers/reranker_modernbert_sigmoid"}.items():
        if (GOLDEN / case / "model").is_dir():
            models[name] = GOLDEN / case / "model"
    with Server([",".join(f"{name}={path}" for name, path in models.items())],
                "--allow_model_control=true") as running:
        yield running


@pytest.fixture(scope="module", params=[(w, s) for w in WIDTHS for s in ("light", "dark")],
                ids=lambda value: "-".join(value))
def page(request, server):
    width, scheme = request.param
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                     "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.binary_location = shutil.which("chromium")
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(
        shutil.which("chromedriver")))
    driver.name_of_run = f"{width}-{scheme}"
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
        "width": WIDTHS[width][0], "height": WIDTHS[width][1], "deviceScaleFactor": 1,
        "mobile": False})
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
        "features": [{"name": "prefers-color-scheme", "value": scheme}]})
    driver.set_script_timeout(60)
    driver.get(server.url + "/")
    wait(driver, "return document.querySelectorAll('[role=tab]:not([hidden])').length > 3")
    yield driver
    driver.quit()


def wait(driver, condition, seconds=30):
    from selenium.webdriver.support.ui import WebDriverWait
    return WebDriverWait(driver, seconds).until(lambda d: d.execute_script(condition))


def tabs(driver):
    return driver.execute_script(
        "return [...document.querySelectorAll('[role=tab]:not([hidden])')].map(t => t.id.slice(4))")


def use(driver, tab):
    """Opens the tab, takes its sample, and asks."""
    driver.execute_script(
        "document.getElementById('tab-' + arguments[0]).click();"
        "const panel = document.getElementById(arguments[0]);"
        "for (const b of panel.querySelectorAll('button')) if (b.textContent === 'Sample') b.click();",
        tab)
    if tab == "picture":
        wait(driver, "return !document.querySelector('#picture canvas').hidden")
    driver.execute_script(
        "const form = document.getElementById(arguments[0]).querySelector('form');"
        "if (form) form.requestSubmit();", tab)
    if tab in ANSWERS:
        wait(driver, f"const panel = document.getElementById('{tab}');"
             "const error = panel.querySelector('.error').textContent;"
             "if (error) return 'error: ' + error;"
             f"return panel.querySelector('div[aria-live] {ANSWERS[tab]}') && "
             "!panel.querySelector('button.primary').disabled")
    return driver.execute_script(
        "return document.getElementById(arguments[0]).querySelector('.error')?.textContent || ''", tab)


def test_every_tab_answers_its_sample(page):
    there = tabs(page)
    assert {"classify", "picture", "embed", "generate", "estimate", "models", "metrics"} <= set(there)
    for tab in there:
        assert use(page, tab) == "", tab
        # Nothing is wider than the page: no sideways scrolling.
        assert page.execute_script(
            "return document.documentElement.scrollWidth <= window.innerWidth"), tab
        if SCREENSHOTS:
            folder = pathlib.Path(SCREENSHOTS)
            folder.mkdir(parents=True, exist_ok=True)
            page.save_screenshot(str(folder / f"{tab}-{page.name_of_run}.png"))


def test_the_code_below_an_answer_is_python(page):
    for tab in set(tabs(page)) & set(ANSWERS):
        assert use(page, tab) == "", tab
        curl, python = page.execute_script(
            "return [...document.querySelectorAll(`#${arguments[0]} details pre`)]"
            ".map(pre => pre.textContent)", tab)
        assert curl.startswith("curl ") and page.execute_script("return location.origin") in curl
        compile(python, tab, "exec")


def test_no_serious_findings_of_axe(page):
    axe = axe_selenium.Axe(page)
    axe.inject()
    for tab in tabs(page):
        use(page, tab)
        found = [f"{one['id']}: {node['html'][:120]}" for one in axe.run()["violations"]
                 if one["impact"] in ("serious", "critical") for node in one["nodes"]]
        assert not found, (tab, found)


def test_the_keyboard_moves_between_tabs(page):
    from selenium.webdriver.common.keys import Keys
    first, second = tabs(page)[:2]
    page.execute_script("const tab = document.getElementById('tab-' + arguments[0]); tab.click(); tab.focus()",
                        first)
    page.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
    assert page.switch_to.active_element.get_attribute("id") == "tab-" + second
    assert page.execute_script("return document.querySelectorAll('[role=tabpanel]:not([hidden])').length") == 1


def test_models_are_unloaded_and_loaded(page):
    page.execute_script("document.getElementById('tab-models').click()")
    for action in ("unload", "load"):
        button = f"[aria-label='{action} page-type']"
        wait(page, f"return document.querySelector(\"{button}\")")
        page.execute_script(f"document.querySelector(\"{button}\").click()")
    wait(page, "return document.querySelector(\"[aria-label='unload page-type']\")")


def test_nothing_is_asked_of_other_hosts(page):
    hosts = page.execute_script(
        "return performance.getEntriesByType('resource').map(e => new URL(e.name).host)")
    assert set(hosts) <= {page.execute_script("return location.host")}
