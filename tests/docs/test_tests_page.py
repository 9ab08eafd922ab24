"""The tests on docs/tests.md pass with the installed fixture and librdkafka's mock cluster."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs/tests.md"
CONFTEST = """
import pytest
from flexwire.demo.cluster import MockCluster

@pytest.fixture
def bootstrap():
    with MockCluster() as cluster:
        cluster.create_topic("orders", 1)
        yield cluster.bootstrap.split(",")[0]
"""


@pytest.mark.long
@pytest.mark.slow
def test_the_tests_of_the_page_pass(tmp_path: Path) -> None:
    [plugins, block] = re.findall(
        r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL
    )
    (tmp_path / "conftest.py").write_text(plugins + CONFTEST, encoding="utf-8")
    (tmp_path / "test_page.py").write_text(block, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    ran = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "3 passed" in ran.stdout
