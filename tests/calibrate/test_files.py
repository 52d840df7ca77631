"""What is read from files, and what is refused: file and line, all at once."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.calibration.csv_tables import normal, read_csv_table
from costmodel.calibration.files import read_measurements
from costmodel.calibration.measurements import Measurements
from costmodel.calibration.nccl_text import read_nccl_text
from costmodel.errors import InputError
from costmodel.model.placement import Collective
from tests.calibrate.texts import nccl_text

TIMES = {2**20 * 2**i: 1e-4 * 2**i for i in range(6)}

OLD = """\
# nThread 1 nGpus 2 minBytes 8388608 maxBytes 16777216 step: 2(factor) warmup iters: 5 iters: 20
#                                       out-of-place                    in-place
#      size     count   type  redop    time  algbw  busbw  error    time  algbw  busbw  error
    8388608   2097152  float    sum  1000.0   8.39   8.39  2e-07  1000.0   8.39   8.39  2e-07
   16777216   4194304  float    sum  2000.0   8.39   8.39  2e-07  2000.0   8.39   8.39  2e-07
"""
"""Before 2021: no root, no device list here, and the largest difference in place of #wrong."""


def read(tmp_path: Path, name: str, text: str) -> Measurements:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return read_measurements([path])


def faults(tmp_path: Path, name: str, text: str) -> str:
    with pytest.raises(InputError) as caught:
        read(tmp_path, name, text)
    return str(caught.value)


@pytest.mark.parametrize(
    "row",
    [
        "1e200,1e200,1e200,bf16,1e300",
        "0.5,64,64,bf16,3",
        "1e-200,1,1,bf16,1",
        "64,64,64,bf16,1e-9",
        "64,64,64,bf16,1e13",
        '"' + "1" * 200_000 + '",64,64,bf16,1',
    ],
)
def test_values_that_no_machine_has_are_refused(tmp_path: Path, row: str) -> None:
    assert "x.csv" in faults(tmp_path, "x.csv", f"m,n,k,dtype,time_us\n{row}\n")


@pytest.mark.parametrize("word", ["maybe", "2", "-1", "0.5"])
def test_causal_is_true_or_false(tmp_path: Path, word: str) -> None:
    text = f"sequence,heads,head_dim,dtype,time_us,causal\n4096,32,128,bf16,900,{word}\n"

    assert "correct causal" in faults(tmp_path, "x.csv", text)


def test_a_column_named_twice_is_refused(tmp_path: Path) -> None:
    text = "m,M,n,k,dtype,time_us\n1,2,3,4,bf16,5\n"

    assert "every column once, got 'm'" in faults(tmp_path, "x.csv", text)


def test_old_output_without_devices_is_read(tmp_path: Path) -> None:
    """Equal bandwidths are those of an all-reduce over two ranks."""
    points = read(tmp_path, "allreduce.log", OLD).collectives

    assert {(p.ranks, p.nodes, p.collective) for p in points} == {(2, 1, Collective.ALL_REDUCE)}
    assert len(points) == 4


def test_hosts_are_nodes(tmp_path: Path) -> None:
    text = nccl_text(TIMES, hosts=["a"] * 4 + ["b"] * 4)

    assert {p.nodes for p in read(tmp_path, "x.txt", text).collectives} == {2}


@pytest.mark.parametrize(
    ("program", "op"),
    [
        ("all_gather_perf", Collective.ALL_GATHER),
        ("reduce_scatter_perf", Collective.REDUCE_SCATTER),
        ("alltoall_perf", Collective.ALL_TO_ALL),
    ],
)
def test_the_output_says_which_collective(tmp_path: Path, program: str, op: Collective) -> None:
    text = nccl_text(TIMES, op=op, program=program)

    assert {p.collective for p in read(tmp_path, "x.txt", text).collectives} == {op}


def test_what_is_not_measured_in_place_is_left_out(tmp_path: Path) -> None:
    text = nccl_text({2**20: 1e-3})
    line = next(line for line in text.splitlines() if line.strip().startswith("1048576"))
    rows = text.replace(line, " ".join([*line.split()[:9], "N/A", "N/A", "N/A", "N/A"]))

    assert len(read(tmp_path, "x.txt", rows).collectives) == 1


def test_the_wrong_collective_shows_in_the_bandwidths(tmp_path: Path) -> None:
    text = nccl_text(TIMES, program="all_gather_perf")

    assert "of all_gather on 8 ranks must be 0.875" in faults(tmp_path, "x.txt", text)


def test_faulty_rows_come_with_their_lines(tmp_path: Path) -> None:
    lines = nccl_text(TIMES).splitlines()
    first = next(i for i, line in enumerate(lines) if line.strip().startswith("1048576"))
    lines[first] = lines[first].rsplit(" ", 3)[0]
    words = lines[first + 1].split()
    lines[first + 1] = " ".join([*words[:5], "-3", *words[6:]])
    words = lines[first + 2].split()
    lines[first + 2] = " ".join([*words[:8], "17", *words[9:]])
    text = faults(tmp_path, "x.txt", "\n".join(lines))

    assert f"x.txt:{first + 1}: " in text
    assert f"x.txt:{first + 2}: " in text
    assert f"x.txt:{first + 3}: " in text
    assert "wrong results" in text


def test_output_without_rows_and_other_programs_are_refused(tmp_path: Path) -> None:
    assert "run it to its end" in faults(tmp_path, "x.txt", nccl_text({}))
    other = nccl_text(TIMES, program="sendrecv_perf")
    assert "'sendrecv'" in faults(tmp_path, "x.txt", other)
    assert "name the file after it" in faults(tmp_path, "x.txt", OLD)
    both = nccl_text(TIMES) + nccl_text(TIMES, op=Collective.ALL_GATHER, program="all_gather_perf")
    assert "a file of its own" in faults(tmp_path, "x.txt", both)


@pytest.mark.parametrize(
    "text",
    [
        "m,n,k,dtype,time_us\n4096,4096,4096,bf16,500\n",
        "M;N;K;Precision;Time (ms)\n4096;4096;4096;torch.bfloat16;0.5\n",
        "# made up\nrows\tcols\tdepth\ttype\tTFLOP/s\n4096\t4096\t4096\tBF16\t274.877906944\n",
    ],
)
def test_products_are_read_under_usual_names(tmp_path: Path, text: str) -> None:
    point = read(tmp_path, "gemm.csv", text).gemms[0]

    assert point.precision == "bf16"
    assert point.flop_per_s == pytest.approx(274.877906944e12)


def test_the_other_tables_are_told_by_their_columns(tmp_path: Path) -> None:
    attention = "batch,heads,seq_len,head_dim,causal,dtype,tflops\n2,16,4096,128,true,fp16,100\n"
    memory = "bytes,GB/s\n1e9,1500\n"
    collective = "collective,world_size,bytes,seconds\nall_gather,4,1e6,1e-3\n"

    assert read(tmp_path, "a.csv", attention).attention[0].flop_per_s == pytest.approx(1e14)
    assert read(tmp_path, "b.csv", memory).streams[0].seconds == pytest.approx(1e9 / 1.5e12)
    assert read(tmp_path, "c.csv", collective).collectives[0].nodes == 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "write a header and rows"),
        ("a,b\n1,2\n", "GEMM sweep: m, n, k, a time"),
        ("m,n,k,time\n1,2,3,4\n", "a time with its unit"),
        ("m,n,k,time_us\n1,2,3,4\n", "add precision (dtype or precision"),
        ("m,n,k,dtype,time_us\n", "write one row"),
        ("m,n,k,dtype,time_us\n1,2,3,bf16\n", "x.csv:2: must be a row of a GEMM sweep"),
        ("m,n,k,dtype,time_us\n1,2,3,bf17,1\n", "correct precision"),
        ("m,n,k,dtype,time_us\n1,-2,x,bf16,1\n", "correct n, k"),
        ("m,n,k,dtype,time_us\n1,2,3,bf16,nan\n", "the time"),
        ("m,n,k,dtype,time_us\n1,2,3,bf16,0\n", "the time"),
        ("collective,ranks,bytes,time_us\nbroadcast,8,1e6,3\n", "name one of all_reduce"),
        ("collective,ranks,bytes,time_us\nall_reduce,1,1e6,3\n", "two ranks or more"),
    ],
)
def test_faulty_tables_say_what_to_write(tmp_path: Path, text: str, told: str) -> None:
    assert told in faults(tmp_path, "x.csv", text)


def test_all_files_are_judged_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("m,n,k,dtype,time_us\n1,2,3,bf17,1\n")
    (tmp_path / "b.txt").write_text("no benchmark")
    (tmp_path / "c.jsonl").write_text("[]\n")
    (tmp_path / "d.csv").write_bytes(b"\xff\xfe")
    (tmp_path / "notes.md").write_text("left alone")
    with pytest.raises(InputError) as caught:
        read_measurements([tmp_path, tmp_path / "none.txt", Path("/dev/null")])
    fields = [v.field.removeprefix(f"{tmp_path}/") for v in caught.value.violations]

    assert fields == ["a.csv:2", "b.txt", "c.jsonl:1", "d.csv", "none.txt", "/dev/null"]


def test_a_folder_without_measurements_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a folder without"):
        read_measurements([tmp_path])


@given(st.text(max_size=300))
def test_no_text_crashes_the_readers(text: str) -> None:
    read_csv_table(text, "x.csv")
    read_nccl_text(f"size time algbw busbw\n{text}", "all_reduce.txt")


@given(
    st.lists(st.text(alphabet="size time algbw busbw#0123456789.-e\n", max_size=40), max_size=30)
)
def test_no_rows_crash_the_reader_of_nccl_tests(words: list[str]) -> None:
    header = "# size count time algbw busbw #wrong time algbw busbw #wrong\n"
    points, _ = read_nccl_text(header + "\n".join(words), "all_reduce.txt")

    assert all(point.seconds > 0 and point.ranks > 1 for point in points)


def test_column_names_are_read_without_signs() -> None:
    assert normal(" Time (us) ") == "time_us"
    assert normal("TFLOP/s") == "tflop_s"


def test_a_file_that_is_named_twice_counts_once(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("m,n,k,dtype,time_us\n4096,4096,4096,bf16,600\n")

    assert len(read_measurements([tmp_path / "x.csv", tmp_path]).gemms) == 1
