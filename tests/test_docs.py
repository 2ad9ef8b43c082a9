"""Every command and every example in README and docs is run, in a folder with the files that they name."""

import ast
import json
import random
import re
import shlex
from pathlib import Path

import pytest
import torch

import bilmo
from bilmo.formats import open as layouts
from bilmo.net.config import CellConfig, CharsConfig, WordsConfig
from bilmo.store import model_folder as folder
from bilmo.store.bundle import Bundle
from bilmo.store.published import published
from file_server import serving
from program import program
from sense_data import write_sense_files

ROOT = Path(__file__).parents[1]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\((?!https?://|#)([^)#\s]+)(?:#[^)\s]*)?\)")
SHOWN = re.compile(r"^Code: \[([\w.]+)\]\(\.\./(src/[\w/]+\.py)\)$", re.MULTILINE)
FENCE = re.compile(r"^```(\w*)( [^\n]*)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
"""A block. One with a title, such as ```python title="gensim", needs a library of its own: tests_plug runs it."""


def blocks(page, language):
    found = FENCE.findall(page.read_text(encoding="utf-8"))
    return [body for kind, title, body in found if kind == language and not title]


def commands(page):
    return [line for block in blocks(page, "sh") for line in block.splitlines() if line.strip()]


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """A folder with the files that the pages name: `old-model`, `model`, `sentences.txt`, `text.txt`, task data."""
    torch.manual_seed(0)
    config = bilmo.BiLMConfig(
        words=WordsConfig(chars=CharsConfig(width=4, filters=((1, 8), (2, 16)), highways=1)),
        cell=CellConfig(cells=24),
        width=8,
    )
    bundle = Bundle(config, bilmo.BiLM(config).state_dict(), layout="made for a test")
    layouts.write(bundle, tmp_path / "old-model", "allennlp")
    folder.write(bundle, tmp_path / "model")
    (tmp_path / "sentences.txt").write_text("The cat sat .\n\nHello world\n", encoding="utf-8")
    chosen = random.Random(1)
    lines = (" ".join(chosen.choices(["the", "cat", "dog", "saw", "a", "mat"], k=8)) + " ." for _ in range(60))
    (tmp_path / "text.txt").write_text("\n".join(lines), encoding="utf-8")
    rows = ("good\tthe cat saw a dog .\n", "bad\ta dog sat on the mat .\n")
    (tmp_path / "reviews.tsv").write_text("".join(f"{row[:-1]} {k}\n" for k in range(12) for row in rows))
    sentences = "Anna\tB-PER\nLee\tI-PER\nsaw\tO\nOslo\tB-LOC\n\n", "the\tO\ncat\tO\nsat\tO\n\n"
    (tmp_path / "entities.conll").write_text("".join(f"{k}\tO\n{s}" for k in range(9) for s in sentences))
    pairs = ("a cat saw a dog .\ta cat saw .\tentailment\n", "the cat sat .\ta dog sat on the mat .\tneutral\n")
    rows = "".join(f"{k} {row}" for k in range(12) for row in pairs)
    (tmp_path / "pairs.tsv").write_text(f"premise\thypothesis\tlabel\n{rows}")
    marked = ("Eats(e1,e2)\tthe <e1>cat</e1> saw a <e2>dog</e2> .\n", "Other\ta <e1>mat</e1> and the <e2>cat</e2> .\n")
    (tmp_path / "relations.tsv").write_text("".join(f"{row[:-1]} {k}\n" for k in range(12) for row in marked))
    chinese = [" ".join(chosen.choices(["猫", "狗", "看见", "一只", "那", "跑"], k=8)) + " 。" for _ in range(60)]
    (tmp_path / "小说.txt").write_text("\n".join(chinese), encoding="utf-8")
    novel = "".join(f"玄德引兵来到涿郡。玄德大喜。第{k}回\n" for k in range(60))
    (tmp_path / "三国.txt").write_text(novel, encoding="utf-8")
    for names in ("names.txt", "人名.txt"):
        (tmp_path / names).write_text("玄德\n", encoding="utf-8")
    (tmp_path / "句子.txt").write_text("猫看见狗。\n\n味道很好。\n", encoding="utf-8")
    (tmp_path / "评论.tsv").write_text("".join(f"好评\t味道很好{k}。\n差评\t太慢了{k}。\n" for k in range(12)), "utf-8")
    tagged = "".join(f"{k}\tO\n宝玉\tB-PER\n在\tO\n金陵\tB-LOC\n。\tO\n\n" for k in range(18))
    (tmp_path / "实体.conll").write_text(tagged, encoding="utf-8")
    marked = ("看见(e1,e2)\t{}<e1>猫</e1>看见<e2>狗</e2>。\n", "Other\t{}<e1>猫</e1>和<e2>狗</e2>。\n")
    (tmp_path / "关系.tsv").write_text("".join(row.format(k) for k in range(12) for row in marked), encoding="utf-8")
    pair = '{{"sentence1": "猫看见狗{}。", "sentence2": "{}", "label": "{}"}}\n'
    said = [("狗在那。", "entailment"), ("没有狗。", "contradiction")] * 12
    (tmp_path / "句对.jsonl").write_text("".join(pair.format(k, *one) for k, one in enumerate(said)), encoding="utf-8")
    frame = '{{"words": ["{}", "{}", "{}"], "verbs": [{{"index": 1, "tags": ["B-ARG0", "B-V", "B-ARG1"]}}]}}\n'
    for name, words in (("roles.jsonl", ("cat", "saw", "dog")), ("角色.jsonl", ("猫", "看见", "狗"))):
        rows = (frame.format(f"{words[0]}{k}", *words[1:]) for k in range(24))
        (tmp_path / name).write_text("".join(rows), encoding="utf-8")
    for name, context, asked in (
        ("questions.json", "cat {} saw a dog.", "Who?"),
        ("问题.json", "猫{}看见狗。", "谁？"),
    ):
        texts = [context.format(k) for k in range(24)]
        answers = [{"text": text[:3] if name[0] == "q" else text[:1], "answer_start": 0} for text in texts]
        qas = [[{"id": f"{k}", "question": asked, "answers": [answer]}] for k, answer in enumerate(answers)]
        paragraphs = [{"context": text, "qas": one} for text, one in zip(texts, qas, strict=True)]
        (tmp_path / name).write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}), encoding="utf-8")
    story = "#begin document (a); part 0\na 0 0 cat{} - (0)\n\na 0 0 It - (0)\na 0 1 ran - -\n\n#end document\n"
    (tmp_path / "stories.conll").write_text("".join(map(story.format, range(12))))
    german = {"a": "eine", "cat": "Katze", "dog": "Hündin", "sleeps": "schläft", "runs": "läuft"}
    drawn = [[chosen.choice(list(german)) for _ in range(5)] for _ in range(30)]
    for name, part in (("train", drawn), ("val", drawn[:6])):
        (tmp_path / f"{name}.en").write_text("".join(" ".join(row) + ".\n" for row in part), encoding="utf-8")
        translated = (" ".join(german[word] for word in row) + ".\n" for row in part)
        (tmp_path / f"{name}.de").write_text("".join(translated), encoding="utf-8")
    article = '{{"paras": ["The cat {} saw a dog. It ran.", "Nobody knows."], "title": "Cat {} saw dog"}}\n'
    (tmp_path / "news.jsonl").write_text("".join(article.format(k, k) for k in range(20)))
    write_sense_files(tmp_path)
    (tmp_path / "test.xml").rename(tmp_path / "ALL.data.xml")
    (tmp_path / "test.key").rename(tmp_path / "ALL.gold.key.txt")
    (tmp_path / "glove.txt").write_text("the 0.1 0.2 0.3\ncat 0.3 0.1 0.2\n")
    monkeypatch.chdir(tmp_path)
    with serving() as mirror:  # of a published model that the pages install
        for file in published()["elmo-small"].urls():
            (source,) = (tmp_path / "old-model").glob(f"*{Path(file).suffix}")
            mirror.files[f"/elmo-small/{file}"] = source.read_bytes()
        monkeypatch.setenv("BILMO_MIRROR", mirror.address)
        yield tmp_path


def test_the_pages_are_found_and_show_something():
    assert {"README.md", "README.zh.md", "old-models.md"} <= {page.name for page in PAGES}
    assert sum(len(commands(page)) for page in PAGES) > 10


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")], ids=lambda p: str(p.relative_to(ROOT)))
def test_python_examples_run(page, workplace):
    names = {}
    for block in blocks(page, "python"):
        exec(compile(block, str(page), "exec"), names)
    assert names.keys() > {"elmo"}


RUN = [p for p in PAGES if commands(p) and p.name != "README.zh.md"]
"""Pages whose commands are run; README.zh.md has those of README.md, which another test compares."""


@pytest.mark.parametrize("page", RUN, ids=lambda p: str(p.relative_to(ROOT)))
def test_commands_run(page, workplace):
    made = {words[3] for line in commands(page) if (words := shlex.split(line))[:2] == ["bilmo", "convert"]}
    if "model" in made:  # the page creates it
        (workplace / "model").rename(workplace / "other")
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    for line in commands(page):
        name, *rest = shlex.split(line)
        if name == "make":
            assert rest[0] in targets
        elif name == "pip":
            assert line in script
        elif name == ".venv/bin/python":  # one test file, or one test
            assert rest[:2] == ["-m", "pytest"]
            text = (ROOT / rest[2]).read_text(encoding="utf-8")
            assert all(f"def test_{test}" in text for test in rest[4:])
        else:
            assert name == "bilmo", f"{page.name} shows a command that no test runs: {line}"
            done = program(workplace, *rest)
            assert done.code == 0, f"{line}\n{done.err}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_to_files_resolve(page):
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    missing = [link for link in LINK.findall(text) if not (page.parent / link).exists()]
    assert missing == []


def test_functions_that_a_page_shows_exist():
    shown = [(page.name, *found) for page in PAGES for found in SHOWN.findall(page.read_text(encoding="utf-8"))]
    assert len(shown) > 10
    for page, name, path in shown:
        node = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        for part in name.split("."):
            inside = [child for child in ast.iter_child_nodes(node) if getattr(child, "name", None) == part]
            assert inside, f"{page} shows {name}, which is not in {path}"
            node = inside[-1]


def test_functions_of_the_walks_exist():
    """Each row of a walk names files and the functions to read in them."""
    rows = re.findall(
        r"^\| [^|]+ \| (`[^|]+`) \| (`[^|]+`) \|$", (ROOT / "docs" / "architecture.md").read_text("utf-8"), re.M
    )
    assert len(rows) > 25
    for files, functions in rows:
        sources = [
            (ROOT / "src" / "bilmo" / name).read_text(encoding="utf-8") for name in re.findall(r"`([^`]+)`", files)
        ]
        trees = [ast.parse(source) for source in sources]
        for function in re.findall(r"`([^`]+)`", functions):
            assert any(_holds(tree, function.split(".")) for tree in trees), f"{function} is not in {files}"


def _holds(node: ast.AST, names: list[str]) -> bool:
    """Whether a tree defines a function or a method of a class."""
    inside = [child for child in ast.iter_child_nodes(node) if getattr(child, "name", None) == names[0]]
    return bool(inside) and (len(names) == 1 or _holds(inside[-1], names[1:]))


def test_the_navigation_lists_every_page():
    listed = set(re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8")))
    assert listed == {page.relative_to(ROOT / "docs").as_posix() for page in PAGES if page.parent != ROOT}


def test_continuous_integration_runs_the_commands_of_readme():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert all(f"make {target}" in script for target in ("test", "demo", "docs", "dist"))


def test_the_citation_file_has_the_required_keys():
    keys = re.findall(r"^([a-z-]+):", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    assert {"cff-version", "message", "title", "authors"} <= set(keys)


def test_both_readmes_show_the_same_commands():
    assert commands(ROOT / "README.md") == commands(ROOT / "README.zh.md")
