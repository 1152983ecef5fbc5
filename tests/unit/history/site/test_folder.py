"""The files of a site: what programs and pages read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kteardown_history.site.folder import SiteFolder


def begin(tmp_path: Path) -> SiteFolder:
    return SiteFolder.begin(tmp_path / "site", ())


def test_data_is_json_and_a_script_with_the_same_value(tmp_path: Path) -> None:
    site = begin(tmp_path)
    value = {"name": "</script>\u2028\x1b", "values": [1.5, None]}
    site.save_data("data", value)
    text = (tmp_path / "site/data.json").read_text(encoding="ascii")
    assert json.loads(text) == value
    script = (tmp_path / "site/data.js").read_text(encoding="ascii")
    assert script == f'kteardownData("data",{text.strip()});\n'


def test_a_number_that_json_has_not_is_refused(tmp_path: Path) -> None:
    site = begin(tmp_path)
    with pytest.raises(ValueError, match="JSON"):
        site.save_data("data", float("nan"))


def test_a_file_is_current_from_the_time_of_what_it_is_made_from(tmp_path: Path) -> None:
    begin(tmp_path)
    site = begin(tmp_path)
    assert not site.is_current("page.html", 0)
    site.save("page.html", "text")
    site.set_time("page.html", 5_000_000_000)
    assert site.is_current("page.html", 5_000_000_000)
    assert not site.is_current("page.html", 5_000_000_001)


def test_a_page_of_another_version_is_not_current(tmp_path: Path) -> None:
    begin(tmp_path).save("page.html", "text")
    assert begin(tmp_path).is_current("page.html", 0)
    (tmp_path / "site/.kteardown-site").write_text("of another version\n")
    assert not begin(tmp_path).is_current("page.html", 0)
