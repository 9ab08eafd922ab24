"""docs/formats.md lists every key of the JSON that an analysis writes."""

from __future__ import annotations

import json
import re

from flexwire.facts.audit import Audit, AuditFinding
from flexwire.facts.facts import Facts
from flexwire.parties import Party
from flexwire.report.audit_files import audit_json
from tools.pages.formats import PAGE, classes_of


def test_every_key_of_facts_is_on_the_page() -> None:
    built = Facts(title="t", made_at_us=0, flexwire_version="0", newest_release="4").to_json()
    text = PAGE.read_text(encoding="utf-8").partition("\n### Facts\n")[2].partition("\n### ")[0]
    assert re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE) == [*built]


def test_a_finding_has_the_keys_that_the_page_lists() -> None:
    party = Party(client_id=None, address=None)
    finding = AuditFinding("4.4.0", "will break", "", "", "client", party, 1, 0, 0, 1, 1)
    (written,) = json.loads(audit_json(Audit(findings=(finding,))))["findings"]
    text = PAGE.read_text(encoding="utf-8").partition("\n## audit.json\n")[2]
    assert re.findall(r"^- `(\w+)`$", text, re.MULTILINE) == [*written]


def test_every_type_has_a_word_and_every_class_says_what_it_is() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert "| value |" not in text
    assert all(f"\n### {one.__name__}\n" in text for one in classes_of(Facts))
    assert all(one.__doc__ for one in classes_of(Facts))
