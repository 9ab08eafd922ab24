"""The site contains every page once, and no broken links.

`make site` builds the site, and treats every warning of the generator as an error.
"""

from __future__ import annotations

import pkgutil
import re
from importlib import import_module
from pathlib import Path

import pytest

import flexwire
from tools.site.__main__ import list_versions, numbers
from tools.site.contents import MODULES, NOT_PUBLIC, SECTIONS
from tools.site.docstrings import literal
from tools.site.front import front_page, section_of_pages, titles
from tools.site.staging import contents, stage

ROOT = Path(__file__).parents[2]
PAGES = [page for pages in SECTIONS.values() for page in pages]
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def test_every_page_of_the_docs_is_in_one_section() -> None:
    docs = [f"docs/{path.stem}" for path in (ROOT / "docs").glob("*.md")]
    docs += [f"docs/notes/{path.stem}" for path in (ROOT / "docs" / "notes").glob("*.md")]
    assert sorted(one for one in PAGES if one.startswith("docs/")) == sorted(
        [*docs, "docs/reference/README"]
    )
    assert len(PAGES) == len({*PAGES})


def test_every_room_with_public_names_has_a_page() -> None:
    rooms = [one.name for one in pkgutil.walk_packages(flexwire.__path__, "flexwire.") if one.ispkg]
    public = {name for name in rooms if hasattr(import_module(name), "__all__")}
    assert public - NOT_PUBLIC <= {*MODULES}
    assert not NOT_PUBLIC & {*MODULES}


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = tmp_path_factory.mktemp("site")
    stage(ROOT, source)
    return source


def test_every_link_of_the_staged_pages_leads_to_one_of_them(staged: Path) -> None:
    seen = 0
    for page in staged.rglob("*.md"):
        text = re.sub(
            r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
        )
        for target in re.findall(r"\]\(([^)\s#]+)(?:#[^)]*)?\)", text):
            if "://" not in target:
                assert (page.parent / target).is_file(), f"{page}: {target}"
                seen += 1
    assert seen > len(PAGES)


def test_a_link_that_is_named_by_its_path_has_the_page_s_title(staged: Path) -> None:
    page = (staged / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert "[What was seen on real brokers](docs/real-brokers.md)" in page
    assert not re.search(r"\[docs/[^\]]*\.md\]\(", page)


def test_the_front_page_lists_every_page_that_is_no_orphan(staged: Path) -> None:
    told = {line for line in contents().splitlines() if "/" in line or line in {*PAGES, "overview"}}
    pages = {path.relative_to(staged).as_posix().removesuffix(".md") for path in staged.rglob("*")}
    orphans = {one for one in pages if one.startswith("docs/reference/")}
    written = {one for one in pages if (staged / f"{one}.md").is_file()}
    assert told == written - orphans - {"index"} | {"docs/reference/README"}


def test_the_front_page_says_what_readme_says_first() -> None:
    front = front_page((ROOT / "README.md").read_text(encoding="utf-8"))
    assert front.sentence.startswith("flexwire decodes, checks and measures")
    assert front.install.startswith("pip install ")
    assert len(front.purposes) == 5
    assert 'href="docs/performance.html">how fast</a>' in front.purposes[-1][1]
    assert front.example[0].startswith("flexwire decode --frame ")
    assert front.example[1].startswith('{"frame": "request"')
    assert front.demo[0] == "make run"
    assert front.demo[1].endswith("report.html")


def test_a_readme_without_its_first_screen_is_an_error() -> None:
    with pytest.raises(ValueError, match="expected a sentence"):
        front_page("# flexwire\n\n**One sentence.**\n\n## Install\n")


def test_a_search_knows_the_section_of_every_page(staged: Path) -> None:
    sections = section_of_pages()
    written = {
        path.relative_to(staged).as_posix().removesuffix(".md") for path in staged.rglob("*.md")
    }
    assert {one for one in written if not one.startswith("docs/reference/")} - {"index"} <= {
        *sections
    }
    script = (staged / "static" / "sections.js").read_text(encoding="utf-8")
    assert '"docs/tap": "Clusters"' in script


def test_every_page_has_a_title_and_the_picture_is_staged(staged: Path) -> None:
    assert all(title for pages in titles(ROOT).values() for _, title in pages)
    assert "](docs/images/report.png)" in (staged / "overview.md").read_text(encoding="utf-8")
    assert (staged / "docs" / "images" / "report.png").is_file()


def test_no_note_for_the_tests_is_shown(staged: Path) -> None:
    assert not any("\n<!-- not run" in one.read_text("utf-8") for one in staged.rglob("*.md"))


def test_a_public_name_is_described_on_one_page(staged: Path) -> None:
    told = (staged / "api" / "flexwire.wire.md").read_text(encoding="utf-8")
    assert ":exclude-members: Encoding" in told


def test_fences_of_docstrings_become_literal_blocks() -> None:
    lines = ["As:", "```", "a ─▶ b", "", "  c", "```", "Then."]
    assert literal(lines) == ["As:", "", "::", "", "    a ─▶ b", "    ", "      c", "", "Then."]


def test_versions_are_listed_with_the_newest_first(tmp_path: Path) -> None:
    for version in ("0.9.1", "0.10.0"):
        (tmp_path / version / "guide").mkdir(parents=True)
        (tmp_path / version / "objects.inv").touch()
        (tmp_path / version / "index.html").touch()
        (tmp_path / version / "guide" / "index.html").touch()
    list_versions(tmp_path)
    assert (tmp_path / "versions.js").read_text(encoding="utf-8") == (
        'window.flexwireVersions = [{"name": "0.10.0", "pages": ["index.html"]}, '
        '{"name": "0.9.1", "pages": ["index.html"]}];\n'
    )
    assert "url=0.10.0/index.html" in (tmp_path / "index.html").read_text(encoding="utf-8")
    assert numbers("1.0.dev1") < numbers("1.0.1")
