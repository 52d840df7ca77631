"""Reading of job documents."""

from pathlib import Path

import pytest

from costmodel.errors import InputError
from costmodel.job import Job
from costmodel.jobs.read import load_job

SMALL = {"global_batch_size": 8, "sequence_length": 128}


def test_choices_left_open_are_none() -> None:
    assert load_job(SMALL) == Job(global_batch_size=8, sequence_length=128)
    assert load_job({**SMALL, "micro_batch_size": "auto", "schedule": "auto"}).schedule is None


def test_everything_may_be_given() -> None:
    job = Job(
        global_batch_size=8,
        sequence_length=128,
        precision="fp8",
        optimizer="sgd",
        micro_batch_size=2,
        schedule="gpipe",
        recompute="full",
        vocab_divisor=1,
        gradient_bytes=2,
        moe_imbalance=1.5,
        software="torchtitan",
    )
    fields = {name: getattr(job, name) for name in Job.__dataclass_fields__}

    assert load_job(fields) == job


def test_job_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text("global_batch_size: 8\nsequence_length: 128\n", encoding="utf-8")

    assert load_job(path) == load_job(SMALL)


def test_all_faults_come_at_once() -> None:
    with pytest.raises(InputError, match=r".") as caught:
        load_job({"global_batch_size": 0, "precision": "bf61", "sequence": 128})

    fields = {violation.field for violation in caught.value.violations}
    assert fields == {"/global_batch_size", "/precision", "/sequence", "/sequence_length"}


def test_an_unknown_schedule_is_refused() -> None:
    with pytest.raises(InputError, match=r"/schedule: must name a known schedule.*1f1b"):
        load_job({**SMALL, "schedule": "1f2b"})


def test_no_batch_is_larger_than_what_can_be_simulated() -> None:
    with pytest.raises(InputError, match="/global_batch_size: must be less than"):
        load_job({**SMALL, "global_batch_size": 10**12})
