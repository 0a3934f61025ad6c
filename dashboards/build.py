#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Writes the dashboards of this folder, from the modules in source/. scripts/dashboards runs it.

Usage: build.py [--check]
  --check  writes nothing; fails when a file is not what it should be
"""

import json
import pathlib
import sys

from source import health, job_detail, memory_flow, node_overview, scheduler

HERE = pathlib.Path(__file__).resolve().parent
MODULES = (memory_flow, node_overview, job_detail, scheduler, health)


def texts():
    """{name of the file: what is in it}."""
    made = [module.dashboard() for module in MODULES]
    return {each.uid.removeprefix("sluice-") + ".json": json.dumps(each.json(), indent=2, ensure_ascii=False) + "\n" for each in made}


def main(arguments):
    if arguments not in ([], ["--check"]):
        sys.exit(f"build.py: unknown argument '{arguments[0]}'; allowed is --check")
    wanted = texts()
    wrong = sorted(file.name for file in HERE.glob("*.json") if file.name not in wanted)
    for name, text in wanted.items():
        file = HERE / name
        if arguments:
            if not file.exists() or file.read_text(encoding="utf-8") != text:
                wrong.append(name)
        else:
            file.write_text(text, encoding="utf-8")
    if wrong:
        sys.exit("build.py: " + ", ".join(wrong) + ": not what source/ says; scripts/dashboards writes the dashboards")


if __name__ == "__main__":
    main(sys.argv[1:])
