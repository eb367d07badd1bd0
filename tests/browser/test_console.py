"""The console in headless Chromium: every tab used, at two widths, light and dark, checked by axe.

Needs chromium and chromedriver on the path and the Python packages of tests/browser/requirements.txt
(tests/run.sh --slow installs both). With LONGVIEW_SCREENSHOTS=FOLDER pictures of all tabs of the bundled models go
there, on an idle machine only (LONGVIEW_ANY_LOAD=1 insists)."""

import os
import pathlib
import re
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
BUSY = 0.5  # Of the one-minute load: more slows what the pictures say.
# Tab -> what its answer shows.
ANSWERS = {
    "classify": "table", "tags": "table", "question": "table", "fill-mask": "table",
    "embed": "table", "search": ".place", "picture": "table", "generate": ".output",
    "estimate": ".card",
}


@pytest.fixture(scope="module")
def server():
    if SCREENSHOTS and os.getloadavg()[0] > BUSY and not os.environ.get("LONGVIEW_ANY_LOAD"):
        pytest.exit(f"the machine is busy: its load of the last minute is {os.getloadavg()[0]:.2f}, pictures are "
                    f"taken below {BUSY}; wait, or set LONGVIEW_ANY_LOAD=1", returncode=3)
    names = ("code-language", "code-lm", "code-search", "page-layout", "page-type")
    models = {name: ZOO / name for name in names if (ZOO / name).is_dir()}
    # Random weights, which make no picture.
    random = {} if SCREENSHOTS else {
        "reader": "longformer/text_question_answering", "masks": "longformer/text_fill_mask",
        "reranker": "sentence_transformers/reranker_modernbert_sigmoid"}
    for name, case in random.items():
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
    open_console(driver, server)
    yield driver
    driver.quit()


def open_console(driver, server):
    driver.get("about:blank")  # Another fragment alone would load nothing.
    driver.get(server.url + "/")
    wait(driver, "return !document.getElementById('tabs').hidden")


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
    assert {"classify", "picture", "embed", "search", "generate", "estimate", "models",
            "metrics"} <= set(there)
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
    for tab in set(tabs(page)) & set(ANSWERS) - {"search"}:
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


def cells(page, tab):
    """The rows of the answer's table."""
    return page.execute_script(
        "return [...document.querySelectorAll(`#${arguments[0]} div[aria-live] tbody tr`)]"
        ".map(row => [...row.cells].map(cell => cell.textContent))", tab)


def test_the_samples_are_right(page):
    for tab in ("classify", "embed", "search", "generate", "picture"):
        assert use(page, tab) == "", tab
    assert cells(page, "classify")[0][0] == "C++"
    first, second, *others = cells(page, "embed")
    assert first[0].startswith("def read_lines") and second[0].startswith("def load_lines")
    assert float(second[1]) > 0.2 + float(others[0][1])
    places = page.execute_script("return [...document.querySelectorAll('#search h3')].map(h => h.textContent)")
    assert places[0].startswith("admission.py:1-5 ")
    written = page.execute_script(
        "const output = document.querySelector('#generate .output');"
        "return output.textContent.slice(output.querySelector('.prompt').textContent.length)")
    assert re.match(r"obtain a copy of the License at\n#\n# +https?://www\.apache\.org/licenses", written)


def test_the_sample_picture_is_understood(page):
    """Each part of the page lies in a box of its class, and no box is without its part."""
    use(page, "picture")
    parts = page.execute_script("return drawPage(document.createElement('canvas'))")
    found = [(label, *map(int, box.split(", "))) for label, _, box in cells(page, "picture")]

    def holds(box, part):
        x, y = (part["x0"] + part["x1"]) / 2, (part["y0"] + part["y1"]) / 2
        return box[0] == part["label"] and box[1] <= x <= box[3] and box[2] <= y <= box[4]

    assert {part["label"] for part in parts} == {"title", "paragraph", "table"}
    for part in parts:
        assert any(holds(box, part) for box in found), (part, found)
    for box in found:
        assert any(holds(box, part) for part in parts), (box, parts)


def test_a_model_that_only_embeds_is_preferred(page, server):
    fill = ("document.querySelectorAll('#embed select, #search select').forEach(one => one.replaceChildren());"
            "const both = MODELS.find(model => model.id === 'code-language');"
            "const only = { ...both, id: 'only', task: 'embedding', tasks: ['embedding'] };"
            "MODELS = arguments[0].map(name => name === 'only' ? only : both);"
            "TABS.forEach(tab => { fillModels(tab); tab.filled?.(); });"
            "return ['#embed select', '#search select'].map(one => document.querySelector(one).value)")
    try:
        assert page.execute_script(fill, ["both"]) == ["code-language", "words alone"]
        assert page.execute_script(fill, ["both", "only"]) == ["only", "only"]
    finally:
        open_console(page, server)


def test_texts_are_read_as_the_command_line_reads_them(page):
    """The cases of tests/client/search_test.cc and of its words."""
    assert page.execute_script("return wordsOf('parseHTTPHeader_2nd, a größer')") == \
        ["parse", "http", "header", "2nd", "größer"]
    stems = page.execute_script("return arguments[0].map(stem)", ["admits", "admitted", "admitting"])
    assert stems == ["admit"] * 3
    assert page.execute_script("return questionStems('where is the cache, and what is cached?')") == \
        ["cach"]
    body = "  statement of the first function();\n" * 10
    text = f"int First() {{\n{body}\n{body}}}\n\nint Second() {{\n{body}}}\n"
    passages = page.execute_script("return passagesOf(arguments[0])", text)
    assert [(one["first"], one["last"]) for one in passages] == [(1, 22), (25, 35)]
    assert text[passages[1]["begin"]:].startswith("int Second()")
    assert page.execute_script("return passagesOf(arguments[0])", "\n \n----\n}\n") == []
    long = page.execute_script("return passagesOf(arguments[0])", "a\n" + "x" * 10000 + "\nb")
    assert [one["end"] - one["begin"] for one in long] == [1, 10000, 1]


@pytest.fixture
def notes(tmp_path):
    """A folder as people have them: two texts, and what is not looked at."""
    root = tmp_path / "notes"
    for name, text in {
            "bread.md": "# Bread\n\nThe dough rests overnight and is baked hot.\n",
            "ships/quay.md": "# Quay\n\nShips that arrive at low tide wait outside the harbour.\n",
            ".git/config": "low tide", "node_modules/tide.js": "low tide",
            "tide.bin": "low tide\0", "tide.log": "low tide " * 150_000}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def drop(page, path):
    """Drops a file or a folder onto the Search tab, as the system's file manager does."""
    page.execute_script("document.getElementById('tab-search').click(); window.scrollTo(0, 0)")
    x, y = page.execute_script(
        "document.querySelector('#search .drop > .muted').textContent = '';"
        "const box = document.querySelector('#search .drop').getBoundingClientRect();"
        "return [box.x + box.width / 2, box.y + 20]")
    data = {"items": [], "files": [str(path)], "dragOperationsMask": 1}
    for event in ("dragEnter", "dragOver", "drop"):
        page.execute_cdp_cmd("Input.dispatchDragEvent",
                             {"type": event, "x": x, "y": y, "data": data})


def taken(page):
    """What the tab says of its files, once it has read them."""
    return wait(page, "const said = document.querySelector('#search .drop > .muted').textContent;"
                "return !/^Reading|^No files yet/.test(said) && said")


def ask(page, question, model="words alone"):
    """The places that are found, best first."""
    page.execute_script(
        "const [question, model] = document.querySelectorAll('#search form input[required], #search select');"
        "question.value = arguments[0]; model.value = arguments[1];"
        "document.querySelector('#search form').requestSubmit()", question, model)
    wait(page, "return !document.querySelector('#search button.primary').disabled")
    assert error_of_search(page) == ""
    return page.execute_script(
        "return [...document.querySelectorAll('#search h3')].map(h => h.textContent)")


def error_of_search(page):
    return page.execute_script("return document.querySelector('#search .error').textContent")


def test_a_dropped_folder_is_searched(page, notes):
    drop(page, notes)
    assert taken(page) == "2 text files; left out: 1 above 1.0 MB (notes/tide.log), 1 binary"
    first, *others = ask(page, "where do ships wait for the low tides?")
    assert first.startswith("notes/ships/quay.md:1-3 ") and not others, "the other has none of the words"
    shown = page.execute_script("return document.querySelector('#search article pre').textContent")
    assert shown == "# Quay\n\nShips that arrive at low tide wait outside the harbour."


def test_vectors_are_kept_between_questions(page, notes):
    drop(page, notes)
    taken(page)
    for calls, question in ((3, "ships at low tide"), (1, "ships at high tide")):
        page.execute_script(
            "window.embedded = []; window.realFetch ??= window.fetch;"
            "window.fetch = (path, options) => {"
            "  if (path === '/v1/embeddings' && !/prompt_name/.test(options.body))"
            "    embedded.push(JSON.parse(options.body)); return realFetch(path, options); }")
        places = ask(page, question, "code-language")
        assert len(places) == 2
        sent = page.execute_script("window.fetch = realFetch; return embedded")
        assert len(sent) == calls and sent[0]["input"] == question
        assert all("chunks" in one for one in sent[1:])


def test_too_many_files_are_a_message(page, tmp_path):
    root = tmp_path / "many"
    root.mkdir()
    for number in range(10_000):
        (root / f"{number}.txt").touch()
    drop(page, root)
    assert taken(page) == "No files."
    assert error_of_search(page).startswith("More than 2,000 files: take a smaller folder")


def test_a_huge_file_is_a_message(page, tmp_path):
    with open(tmp_path / "huge.txt", "wb") as file:
        file.truncate(100 << 20)
    drop(page, tmp_path / "huge.txt")
    assert taken(page) == "0 text files; left out: 1 above 1.0 MB (huge.txt)"


def test_the_servers_folder_is_searched(page, server, notes):
    with Server([ZOO / "code-language"], f"--search_folder={notes}") as own:
        try:
            open_console(page, own)
            page.execute_script("document.getElementById('tab-search').click()")
            assert taken(page) == "2 text files of notes, more are left out"
            assert ask(page, "where do ships wait for the low tides?")[0].startswith("ships/quay.md:1-3 ")
        finally:
            open_console(page, server)


def test_no_tab_is_shown_before_the_models_are_known(page, server):
    held = page.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": (
        "const real = window.fetch, gate = new Promise(open => { window.openGate = open; });"
        "window.fetch = async (path, ...rest) => {"
        "  if (path === '/v1/models') await gate; return real(path, ...rest); };")})["identifier"]
    try:
        page.get("about:blank")
        page.get(server.url + "/#embed")
        wait(page, "return document.getElementById('ready').classList.contains('good')")
        seen = "return [...document.querySelectorAll('#waiting, [role=tab], [role=tabpanel]')]" \
               ".filter(e => e.checkVisibility()).map(e => e.id)"
        assert page.execute_script(seen) == ["waiting"]
        page.execute_script("openGate()")
        wait(page, "return document.getElementById('embed').checkVisibility()")
        assert "waiting" not in page.execute_script(seen)
    finally:
        page.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", {"identifier": held})
        open_console(page, server)


def test_the_chosen_tab_is_in_sight(page):
    for tab in tabs(page):
        assert page.execute_script(
            "const button = document.getElementById('tab-' + arguments[0]);"
            "button.click();"
            "const its = button.getBoundingClientRect();"
            "const bar = button.parentElement.getBoundingClientRect();"
            "return its.left >= bar.left && its.right <= bar.right", tab), tab


def test_nothing_of_the_table_of_models_is_cut(page):
    page.execute_script("document.getElementById('tab-models').click()")
    wait(page, "return document.querySelectorAll('#models td').length")
    assert page.execute_script("const box = document.querySelector('#models .scroll');"
                               "return box.scrollWidth <= box.clientWidth")


def test_docs_have_no_serious_findings_of_axe(page, server):
    page.get(server.url + "/docs")
    try:
        wait(page, "return document.querySelectorAll('details').length > 40")
        page.execute_script("document.querySelectorAll('details').forEach(one => { one.open = true; })")
        axe = axe_selenium.Axe(page)
        axe.inject()
        found = [f"{one['id']}: {node['html'][:120]}" for one in axe.run()["violations"]
                 if one["impact"] in ("serious", "critical") for node in one["nodes"]]
        assert not found
        assert page.execute_script(
            "return document.documentElement.scrollWidth <= window.innerWidth")
    finally:
        open_console(page, server)


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
