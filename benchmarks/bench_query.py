"""Compares an SQL source with Ingest of the same Parquet: python benchmarks/bench_query.py --rows 1500000

The query selects all columns and rows of the repeated taxi sample. Both ways are measured in turn, each in
new processes, without imports: Ingest of the file, and the query plus Ingest of the rows that it stores. The
second should take at most 1.3x as long. `--files` is the number of files of the source. The query always
stores several files, which Ingest reads with one process per core, so CPU seconds are reported as well as
wall time.
"""

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

from bench_ingest import PROJECT, child, measured, write_parquet, write_taxi

BAR = 1.3


def ask(pattern: str, output: str) -> dict[str, float]:
    """Run the query with a new output folder, and measure it."""
    import duckdb
    import pyarrow.parquet

    from slipway.pipeline.config import DataConfig
    from slipway.pipeline.wiring.query_rows import query_rows

    assert duckdb, pyarrow.parquet  # imported before the clock starts
    data = DataConfig(format="sql", label="tips", tables={"trips": {"files": pattern}})
    folder = []
    found = measured(
        lambda: folder.append(query_rows(data, workload="taxi", root=PROJECT, output=Path(output)).folder)
    )
    return {**found, "folder": str(folder[0])}


def main() -> None:
    """Measure both ways in turn and print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_500_000)
    parser.add_argument("--files", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    options = json.dumps({"format": "parquet"})
    print("| round | Ingest wall s | CPU s | query wall s | CPU s | and Ingest wall s | CPU s | wall | CPU |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    ratios: dict[str, list[float]] = {"wall_s": [], "cpu_s": []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for csv in write_taxi(folder, args.rows, args.files):
            write_parquet(csv)
            csv.unlink()
        pattern = f"{folder}/taxi-{args.rows}-*.parquet"
        for number in range(1, args.rounds + 1):
            plain = child("ours", pattern, f"{name}/plain", options)
            asked = child("ask", pattern, f"{name}/output-{number}", program=__file__)
            kept = child("ours", f"{asked['folder']}/part-*.parquet", f"{name}/kept", options)
            for key, found in ratios.items():
                found.append((asked[key] + kept[key]) / plain[key])
            cells = [each[key] for each in (plain, asked, kept) for key in ratios]
            cells += [found[-1] for found in ratios.values()]
            print(f"| {number} | {' | '.join(f'{cell:.2f}' for cell in cells)} |", flush=True)
    wall, cpu = (statistics.median(found) for found in ratios.values())
    print(f"\nMedian: {wall:.2f}x wall, {cpu:.2f}x CPU; the bar is {BAR}x.")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        print(json.dumps(ask(*sys.argv[3:])))
    else:
        sys.path.insert(0, str(PROJECT))
        main()
