"""The page in a real browser: every view, in both languages, light and dark, on a wide screen and on a phone."""

from __future__ import annotations

import json
import re
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium; on Debian: apt install chromium")

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "src" / "bilmo" / "web" / "page"
AXE = ROOT / ".venv" / "axe" / "node_modules" / "axe-core" / "axe.min.js"
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
VIEWS = ("words", "pair", "map", "tasks", "how")
SHIFTS = """() => new Promise((done) => {
  let sum = 0;
  new PerformanceObserver((list) => {
    for (const one of list.getEntries()) if (!one.hadRecentInput) sum += one.value;
  }).observe({type: "layout-shift", buffered: true});
  setTimeout(() => done(sum), 50);
})"""
"""How far the content has moved by itself; what people do moves it within half a second and does not count."""


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def address(server):
    return str(server.base_url).rstrip("/")


@pytest.fixture
def visit(browser, address):
    """Open the page; at the end, nothing may have gone elsewhere, moved by itself or failed."""

    @contextmanager
    def visit(fragment="", *, width=1400, scheme="light", lang="en", fails=False):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, locale=lang)
        page = context.new_page()
        page.asked, problems = [], []
        page.on("request", lambda request: page.asked.append(request))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        page.goto(f"{address}/{fragment}")
        settled(page)
        yield page
        if not fails:
            assert problems == []
        assert {request.url.split("/")[2] for request in page.asked} == {address.split("/")[2]}
        got = {request.url for request in page.asked if request.method == "GET"}
        assert all(re.fullmatch(r"[\w/]*[\w.]*", url.removeprefix(address)) for url in got), "text in an address"
        context.close()

    return visit


def settled(page):
    page.wait_for_selector("main > *")
    page.wait_for_selector("[aria-busy]", state="detached")


def strength(button) -> float:
    return float(button.evaluate("one => one.style.getPropertyValue('--strength')"))


def fits(page):
    """Nothing is wider than the screen."""
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0


def go(page, view):
    page.click(f"nav a[data-view={view}]")
    settled(page)
    fits(page)


@pytest.mark.parametrize(
    ("lang", "scheme", "width"),
    [("en", "light", 1400), ("en", "dark", 400), ("zh", "dark", 1400), ("zh", "light", 400)],
)
def test_every_feature(visit, lang, scheme, width):
    """One walk through all views; the four have every pair of language, theme and width."""
    with visit(f"#words?model={lang}", width=width, scheme=scheme, lang=lang) as page:
        assert page.evaluate(SHIFTS) < 0.05
        dark = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
        paper = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        assert dark == (scheme == "dark") and (sum(map(int, re.findall(r"\d+", paper))) < 200) == dark
        assert page.get_attribute("html", "lang") == ("en" if lang == "en" else "zh-Hans")

        # Words: the chosen one in its sentences, its uses, what is expected, its neighbours
        word = {"en": "rose", "zh": "道"}[lang]
        assert page.inner_text(".panel .chosen span") == word
        assert page.locator(".sentences .word[aria-pressed=true]").count() == 1
        assert page.locator(".sentences .word.same").count() == 11
        assert page.locator(".sentences .word.far").count() > 2, "other senses stand out"
        page.locator(".sentences li:nth-child(2) .word.same").click()
        settled(page)
        assert page.locator(".six .row").count() == 6 and page.locator(".eight .row").count() == 7
        assert page.locator(".chips li").count() == 8
        assert "at=1." in page.url
        assert page.evaluate(SHIFTS) < 0.05
        page.locator(".six button.row").first.click()
        settled(page)
        assert "at=1." not in page.url
        page.go_back()
        settled(page)
        assert "at=1." in page.url and page.inner_text(".panel .chosen small").find("2") >= 0
        page.locator(".toolbar button").click()
        page.fill(".editor textarea", "Ships sail <b>home</b>.\nShips sink.")
        page.click(".editor button.main")
        settled(page)
        assert page.locator(".sentences li").count() == 2 and page.locator(".sentences li b").count() == 0
        page.select_option(".toolbar select", index=1)
        settled(page)
        assert page.locator(".sentences li").count() == 12

        # Two sentences
        go(page, "pair")
        rows = page.locator(".layers-compared .row")
        assert rows.count() == 4 and rows.first.locator(".value").inner_text() == "1.00"
        assert page.locator(".shown .word.same.far").count() == 1
        page.locator(".shown").nth(1).locator(".word").first.click()
        assert "pick=1.0" in page.url
        page.locator("textarea").first.fill("The end.")
        page.wait_for_selector(".shown .word >> text=end")

        # The map: points, the sentence of one, weights that move points and shading
        go(page, "map")
        points = page.locator(".map .point")
        assert points.count() == 12 == page.locator(".uses li").count()
        points.nth(5).dispatch_event("pointerenter")
        assert page.locator("figcaption b").inner_text() == page.locator(".uses li.lit .word.same").first.inner_text()
        shaded = page.locator(".uses li:nth-child(2) .word.same").first
        before = points.nth(1).get_attribute("style"), strength(shaded)
        slider = page.locator(".mix input").nth(1)
        slider.focus()
        for _ in range(8):
            slider.press("PageUp")
        assert points.nth(1).get_attribute("style") != before[0] and strength(shaded) != before[1]
        assert slider.get_attribute("aria-valuetext").startswith("w 5.0")
        assert page.locator(".mix .share").nth(1).inner_text() == "0.99"
        assert "w=0,5,0" in page.url or "w=0%2C5%2C0" in page.url
        page.locator(".mix input").last.press("Home")
        assert "0.10" in page.locator(".formula").last.inner_text()
        page.locator(".presets button").nth(1).click()
        assert page.locator(".point.far").count() == 0, "layer 0 does not see the context"
        page.locator(".presets button").first.click()
        assert page.locator(".point.far").count() > 2 and page.locator(".point.chosen").count() == 1

        # Tasks
        go(page, "tasks")
        assert page.locator("[role=tab]").count() == 3
        asked(page, "Anna saw Oslo")
        assert page.locator(".prediction .marked").inner_text()
        page.locator("[role=tab]").nth(1).click()
        asked(page, "the cat")
        shares = [float(one.split()[0]) for one in page.locator(".prediction .row .value").all_inner_texts()]
        assert len(shares) == 2 and abs(sum(shares) - 100) <= 1
        page.locator("[role=tab]").nth(2).click()
        asked(page, "The cat is red. 🙂 The dog is blue.", "What is the dog?")
        assert page.inner_text(".prediction mark") == page.inner_text(".answer").split("\xa0")[0].rsplit(" ", 2)[0]

        # How it works
        go(page, "how")
        page.locator(".tokens .word").first.click()
        settled(page)
        spelled = page.locator(".spelling .letter").all_inner_texts()
        assert "".join(spelled[1:-1]) == page.locator(".tokens .word").first.inner_text()
        page.locator(".window input").press("ArrowRight")
        assert page.locator(".letter.inside").first.inner_text() == spelled[1]
        page.locator(".grid tr").first.locator("button").nth(1).click()
        words = page.locator(".tokens .word").count()
        assert page.locator(".below td.read").count() == words, "backward has read everything at the first word"
        assert page.locator(".strip").count() == 4


@pytest.mark.parametrize(("lang", "scheme", "width"), [("en", "light", 1400), ("zh", "dark", 400)])
def test_uses_from_an_index(visit, server, lang, scheme, width):
    with visit("#words?set=bank", width=width, scheme=scheme, lang=lang) as page:
        assert page.locator(".six button.row").count() == 6
        page.select_option(".from select", "index")
        settled(page)
        assert page.evaluate("document.activeElement.closest('.from') !== null"), "the choice keeps the focus"
        rows = page.locator(".six .found .row")
        tokens = page.locator(".sentences li").first.locator(".word").all_inner_texts()
        near = server.post("/similar", json={"tokens": tokens, "position": 5, "n": 6}).json()["uses"]
        assert rows.locator("b").all_inner_texts() == [use["word"] for use in near]
        assert rows.locator("small").all_inner_texts() == [f"uses.txt:{use['line']}" for use in near]
        assert rows.first.inner_text().startswith(near[0]["text"].replace("[bank]", "bank"))
        page.locator(".sentences li:nth-child(2) .word.same").click()
        settled(page)
        assert "lent" in rows.first.inner_text(), "the search follows the chosen word"
        page.locator(".mix input").first.press("PageUp")
        assert rows.count() == 6
        page.select_option(".from select", "")
        assert page.locator(".six button.row").count() == 6 and rows.count() == 0

        go(page, "map")
        page.select_option(".from select", "index")
        settled(page)
        fits(page)
        assert "uses=index" in page.url
        senses = server.post("/senses", json={"word": "bank", "n": 50}).json()["senses"]
        points = page.locator(".point.grouped")
        assert points.locator("text").all_text_contents() == [
            str(number) for number, sense in enumerate(senses, 1) for _ in sense["uses"]
        ]
        heads = page.locator(".grouped h3")
        for number, sense in enumerate(senses):
            assert " · ".join(sense["typical_words"]) in heads.nth(number).inner_text()
        last = page.locator(".grouped li").last
        points.last.dispatch_event("pointerenter")
        assert "lit" in last.get_attribute("class")
        assert last.inner_text().startswith(page.inner_text("figcaption"))
        points.first.focus()
        page.keyboard.press("ArrowRight")
        assert page.inner_text("figcaption") == senses[0]["uses"][1]["text"].replace("[bank]", "bank")
        page.fill("#word", "absent")
        page.press("#word", "Enter")
        page.wait_for_selector(".grouped .note >> text=absent")
        assert points.count() == 0 and "word=absent" in page.url
        page.go_back()
        settled(page)
        assert points.count() == sum(len(sense["uses"]) for sense in senses)
        page.select_option("#model", "zh")
        settled(page)
        assert page.locator(".from").count() == 0, "this model has no index"


def asked(page, *values):
    for area, value in zip(page.locator("form textarea").all(), values, strict=True):
        area.fill(value)
    page.click("form button.main")
    page.wait_for_selector(".prediction :is(.marked, .bars)")
    settled(page)


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed; make .venv/axe")
@pytest.mark.parametrize(("scheme", "width", "lang"), [("light", 1400, "en"), ("dark", 400, "zh")])
def test_axe_finds_nothing_serious(visit, scheme, width, lang):
    task = "#tasks?task=my-tag&input=Anna+saw+Oslo"
    with visit(task, scheme=scheme, width=width, lang=lang) as page:
        page.evaluate(AXE.read_text(encoding="utf-8"))
        for number, view in enumerate((*VIEWS, "words", "map")):
            go(page, view)
            if number >= len(VIEWS):
                page.select_option(".from select", "index")
                page.wait_for_selector(".found, .group")
                settled(page)
            found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
            serious = [one for one in found if one["impact"] in ("serious", "critical")]
            places = [(one["id"], [node["html"][:150] for node in one["nodes"]][:3]) for one in serious]
            assert not places, f"{view}: {places}"


def test_the_address_keeps_the_state(visit, address):
    with visit("#map?set=bank&at=3.5&w=0%2C-1%2C2&gamma=0.5") as page:
        before = page.locator(".map .point").nth(2).get_attribute("style")
        link = page.url
    with visit(link.removeprefix(f"{address}/")) as page:
        assert page.locator(".map .point").nth(2).get_attribute("style") == before
        assert page.locator(".point.chosen").get_attribute("aria-label").startswith("She took the money")
        assert "0.50" in page.locator(".formula").last.inner_text()
    with visit("#nonsense?model=none&at=99.99&w=a,b&gamma=x&set=__proto__") as page:
        assert page.locator(".sentences li").count() == 12


def test_own_text_travels_in_the_link(visit):
    with visit("#words?text=The+ship+sank.%0AA+ship+sailed.&at=1.1") as page:
        assert page.inner_text(".panel .chosen span") == "ship"
        assert page.locator(".sentences li").count() == 2


def test_keys_alone_are_enough(visit):
    with visit() as page:
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "content"
        chosen = page.locator(".sentences .word[aria-pressed=true]")
        chosen.focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Enter")
        settled(page)
        assert page.inner_text(".panel .chosen span") == "behind"
        reachable = page.locator(".sentences .word[tabindex='0']").count()
        assert reachable == 12, "one stop per sentence"
        go(page, "map")
        page.locator(".point[tabindex='0']").focus()
        page.keyboard.press("End")
        page.keyboard.press(" ")
        assert page.locator(".point").last.get_attribute("aria-pressed") == "true"


def test_language_and_theme_are_kept(visit):
    with visit() as page:
        page.click(".tools button[lang=zh]")
        settled(page)
        assert page.inner_text("h1") == "句子中的词"
        for theme in ("light", "dark"):
            page.click(".tools .icon")
            assert page.get_attribute("html", "data-theme") == theme
        page.reload()
        settled(page)
        assert page.inner_text("h1") == "句子中的词" and page.get_attribute("html", "data-theme") == "dark"


def test_problems_are_shown_in_place(visit):
    with visit(fails=True) as page:
        page.route("**/fill", lambda route: route.abort())
        page.locator(".sentences .word").first.click()
        page.wait_for_selector(".eight [role=alert]")
        assert page.locator(".six .row").count() == 6, "the rest is still there"
        page.unroute("**/fill")
        page.click(".eight button")
        page.wait_for_selector(".eight .row")
        page.route("**/embed", lambda route: route.fulfill(status=413, body=json.dumps(TOO_LARGE)))
        page.locator(".toolbar button").click()
        page.fill(".editor textarea", "new text")
        page.click(".editor button.main")
        assert page.inner_text(".sentences [role=alert]") == "too long"


TOO_LARGE = {"error": {"message": "too long", "type": "too_large", "param": None, "code": 413}}


def test_a_token_is_asked_for_and_sent_in_a_header(visit, address):
    """The page's part: the server is played by a rule that lets requests pass only with the token."""
    refused = {"error": {"message": "no token", "type": "unauthorized", "param": None, "code": 401}}

    def guarded(route):
        if route.request.headers.get("authorization") == "Bearer secret-token":
            route.continue_()
        else:
            route.fulfill(status=401, body=json.dumps(refused))

    with visit("#tasks", fails=True) as page:
        page.route(re.compile(r"/(info|embed|fill|similar)$"), guarded)
        page.reload()
        page.fill("#token", "secret-token")
        page.click("form button")
        page.wait_for_selector("[role=tab]")
        go(page, "pair")
        assert page.locator(".layers-compared .row").count() == 4 and "secret" not in page.url


def test_arithmetic_is_that_of_numpy(visit):
    """Mixes, cosines and maps against NumPy; of maps, distances, because a map may be turned and mirrored."""
    draw = np.random.default_rng(0)
    rows = draw.normal(size=(9, 40)) * np.linspace(3, 0.1, 40)
    weights = [0.5, -1.0, 2.0]
    script = """async ([rows, weights]) => {
      const v = await import("/vectors.js"), few = rows.slice(0, 3), flat = v.plane(rows);
      return {shares: v.softmax(weights), mixed: [...v.mixed(few, v.softmax(weights), 0.7)],
              cosine: v.cosine(rows[0], rows[1]), flat, turned: v.aligned(flat.map(([x, y]) => [-y, -x]), flat),
              still: v.plane([rows[0], rows[0]]), floats: [...v.floats("AACAPwAAIMA=")]};
    }"""
    with visit("#tasks") as page:
        found = page.evaluate(script, [rows.tolist(), weights])
    shares = np.exp(weights) / np.exp(weights).sum()
    np.testing.assert_allclose(found["shares"], shares)
    np.testing.assert_allclose(found["mixed"], 0.7 * shares @ rows[:3], atol=1e-6)
    assert found["cosine"] == pytest.approx(rows[0] @ rows[1] / np.linalg.norm(rows[0]) / np.linalg.norm(rows[1]))
    left, size, _ = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
    np.testing.assert_allclose(distances(np.array(found["flat"])), distances(left[:, :2] * size[:2]), atol=1e-3)
    np.testing.assert_allclose(found["turned"], found["flat"], atol=1e-6)
    assert np.abs(found["still"]).max() < 1e-6 and found["floats"] == [1.0, -2.5]


def distances(points):
    return np.linalg.norm(points[:, None] - points[None], axis=-1)


SPANS: list[tuple[str, dict[str, Any], list[str]]] = [
    ("tag", {"tokens": ["Anna", "Lee", "saw", "Oslo"], "tags": ["B-PER", "I-PER", "O", "B-LOC"]}, ["Anna Lee", "Oslo"]),
    ("tag", {"tokens": ["宝玉", "在", "金陵"], "tags": ["S-PER", "O", "S-LOC"]}, ["宝玉", "金陵"]),
    ("tag", {"tokens": ["a", "b", "c"], "tags": ["B-X", "E-X", "S-X"]}, ["a b", "c"]),
    ("tag", {"tokens": ["a", "b"], "tags": ["I-X", "I-Y"]}, ["a", "b"]),
    ("roles", {"words": ["cats", "see"], "verbs": [{"index": 1, "tags": ["B-A0", "B-V"]}]}, ["cats", "see"]),
    ("coref", {"sentences": [["She", "saw"], ["her", "cat"]], "clusters": [[[0, 0], [2, 2]]]}, ["She", "her"]),
    ("answer", {"context": "🙂 is blue", "answer": "blue", "begin": 5, "end": 9, "probability": 0.5}, ["blue"]),
    ("answer", {"context": "🙂 is blue", "answer": None, "begin": None, "end": None}, []),
]
"""The kind of a task, one of its results, and the texts that are marked."""


def test_spans_of_predictions(visit):
    script = """async (cases) => {
      const {SHOWN} = await import("/tasks.js"), {h} = await import("/dom.js");
      return cases.map(([kind, result]) => {
        const found = h("div", {}, SHOWN[kind](result));
        for (const one of found.querySelectorAll("sub")) one.remove();
        return [[...found.querySelectorAll("mark")].map((one) => one.textContent), found.textContent];
      });
    }"""
    with visit("#tasks") as page:
        shown = page.evaluate(script, SPANS)
    for (_, result, marked), (marks, text) in zip(SPANS, shown, strict=True):
        assert marks == marked
        words = result.get("tokens") or result.get("words") or [result.get("context", "")]
        assert all(word in text for word in words)


def test_both_languages_have_the_same_texts(visit):
    script = """async () => {
      const {all} = await import("/texts.js");
      const shape = (value) => value && typeof value === "object"
        ? Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, shape(inner)])) : typeof value;
      return [shape(all.en), shape(all.zh)];
    }"""
    with visit("#tasks") as page:
        english, chinese = page.evaluate(script)
    assert english == chinese


def test_the_files_are_small_and_need_nothing_from_elsewhere():
    files = [file for file in PAGE.iterdir() if file.is_file()]
    assert sum(file.stat().st_size for file in files) < 150_000
    for file in files:
        source = file.read_text(encoding="utf-8")
        assert len(source.splitlines()) <= 400
        assert set(re.findall(r"https?://[^\s\"']+", source)) <= {"http://www.w3.org/2000/svg"}
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function", source)
        if file.suffix == ".html":
            assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\bsrc=)", source)
