"""The lock and the bill of materials name exactly what was installed; what the index does not tell is no silence."""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tools import check_release
from tools.check_release import AUDITS, write_supply
from tools.release.environments import Environment, Failed
from tools.release.supply import Package, Told, ask_for_holes, bill_of_materials, installed_by, lock_text, locked

NUMPY = Package("numpy", "2.4.6", "a" * 64, "BSD-3-Clause")
TORCH = Package("torch", "2.13.0+cpu", "b" * 64)
HOLE = {"id": "PYSEC-1", "fixed_in": ["2.5", "3.0"], "withdrawn": None}


def small_wheel(folder: Path, name: str, version: str, *lines: str) -> Path:
    path = folder / f"{name}-{version}-py3-none-any.whl"
    metadata = "\n".join(["Metadata-Version: 2.4", f"Name: {name}", f"Version: {version}", *lines, ""])
    info, tag = f"{name}-{version}.dist-info", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{info}/METADATA", metadata)
        archive.writestr(f"{info}/WHEEL", tag)
        archive.writestr(f"{info}/RECORD", "")
    return path


def index_of(pages: dict[str, object]):
    def fetch(path: str) -> object:
        if path not in pages:
            raise LookupError("404")
        return pages[path]

    return fetch


@pytest.mark.slow  # three environments; make release makes larger ones
def test_of_a_small_environment_the_lock_and_the_bill_name_all_and_only_what_is_in_it(tmp_path):
    (tmp_path / "index").mkdir()
    other = small_wheel(tmp_path / "index", "Other_One", "1.5", "License: MIT")
    wheel = small_wheel(tmp_path, "trimtuner", "1.2.3", "Requires-Dist: other-one>=1")
    environment, report = Environment.made_by(sys.executable, tmp_path / "venv"), tmp_path / "report.json"
    environment.install("--no-index", "--find-links", other.parent, "--report", report, wheel)
    write_supply(report.read_text(), wheel)
    (line,) = [one for one in (tmp_path / "requirements.lock").read_text().splitlines() if not one.startswith("#")]
    assert Requirement(line.split(" --hash")[0]) == Requirement("other-one==1.5")
    bill = json.loads((tmp_path / "sbom.cdx.json").read_text())
    assert bill["metadata"]["component"]["purl"] == "pkg:pypi/trimtuner@1.2.3"
    assert [(one["purl"], one["licenses"]) for one in bill["components"]] == [
        ("pkg:pypi/other-one@1.5", [{"license": {"name": "MIT"}}])
    ]
    again = Environment.made_by(sys.executable, tmp_path / "again")
    lock = ("--require-hashes", "--requirement", tmp_path / "requirements.lock")
    again.install("--no-index", "--find-links", other.parent, *lock)
    assert again.installed() == {"other-one": "1.5"}
    other.write_bytes(other.read_bytes() + b"\0")
    with pytest.raises(Failed, match="DO NOT MATCH THE HASHES"):
        Environment.made_by(sys.executable, tmp_path / "third").install(
            "--no-index", "--find-links", other.parent, *lock
        )


def test_a_lock_is_read_as_it_was_written():
    assert locked(lock_text([NUMPY, TORCH])) == (Package("numpy", "2.4.6", "a" * 64), TORCH)


def test_the_same_packages_make_the_same_bill():
    assert bill_of_materials("1", [NUMPY, TORCH]) == bill_of_materials("1", [NUMPY, TORCH])
    assert '"pkg:pypi/torch@2.13.0%2Bcpu"' in bill_of_materials("1", [TORCH])


def test_a_licence_that_is_a_whole_text_is_left_out():
    told = {
        "metadata": {"name": "A.b_C", "version": "1", "license": "word " * 100},
        "download_info": {"archive_info": {"hashes": {"sha256": "c" * 64}}},
    }
    assert installed_by(json.dumps({"install": [told]})) == (Package("a-b-c", "1", "c" * 64),)


def test_a_hole_of_the_very_version_is_told_and_one_that_was_withdrawn_is_not():
    withdrawn = {"id": "PYSEC-2", "fixed_in": [], "withdrawn": "2025-01-01"}
    pages = {
        "/pypi/numpy/2.4.6/json": {"vulnerabilities": [HOLE, withdrawn]},
        "/pypi/torch/2.13.0/json": {"vulnerabilities": []},
    }
    told = ask_for_holes([NUMPY, TORCH], index_of(pages))
    assert told == Told(("numpy 2.4.6: PYSEC-1, mended in 2.5, 3.0",), ())


@pytest.mark.parametrize(
    ("pages", "why"),
    [
        ({}, "404"),
        ({"/pypi/numpy/json": {"info": {"version": "2.5"}, "vulnerabilities": []}}, "404, and tells of another"),
        ({"/pypi/numpy/2.4.6/json": {}}, "says nothing of holes"),
    ],
)
def test_a_package_of_which_nothing_is_told_does_not_pass_for_a_sound_one(pages, why):
    told = ask_for_holes([NUMPY], index_of(pages))
    assert told.holes == ()
    assert len(told.unanswered) == 1
    assert why in told.unanswered[0]


def test_where_there_is_a_page_of_the_newest_only_it_counts_for_the_newest():
    pages = {"/pypi/numpy/json": {"info": {"version": "2.4.6"}, "vulnerabilities": [HOLE]}}
    assert len(ask_for_holes([NUMPY], index_of(pages)).holes) == 1


def test_an_audit_that_cannot_ask_fails_unless_it_is_told_to_go_on_and_then_says_so(tmp_path, monkeypatch):
    lock = tmp_path / "requirements.lock"
    with pytest.raises(Failed, match="the check 'extras' writes it"):
        AUDITS["online"](lock)
    lock.write_text(lock_text([NUMPY, TORCH]))
    monkeypatch.setattr(
        check_release, "fetch_from_index", index_of({"/pypi/torch/2.13.0/json": {"vulnerabilities": []}})
    )
    with pytest.raises(Failed, match=r"1 of 2 packages could not be asked about: numpy.*\n.*AUDIT=offline"):
        AUDITS["online"](lock)
    assert "1 of 2 packages; NOT ASKED ABOUT: numpy 2.4.6 (404)" in AUDITS["offline"](lock)


@pytest.mark.parametrize("way", AUDITS)
def test_a_known_hole_fails_either_way(tmp_path, monkeypatch, way):
    lock = tmp_path / "requirements.lock"
    lock.write_text(lock_text([NUMPY]))
    pages = index_of({"/pypi/numpy/2.4.6/json": {"vulnerabilities": [HOLE]}})
    monkeypatch.setattr(check_release, "fetch_from_index", pages)
    with pytest.raises(Failed, match="PYSEC-1"):
        AUDITS[way](lock)
