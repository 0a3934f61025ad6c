# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""The result of tests/gpu/run as Markdown, for docs/results/."""
import json

import pair


def markdown(result, simulated=None):
    """`simulated`: what the simulated driver answered to the contract tests, or None."""
    lines = [f"# The driver of {result['gpu'] or 'no GPU'}", ""]
    if result["simulated"]:
        lines += ["A test of the script on the simulated driver. It says nothing about a GPU.", ""]
    lines += [f"{result['date']}, commit {result['commit']}, {result['driver'] or 'no driver'}.", ""]
    for key, value in result["machine"].items():
        lines.append(f"* {key}: {value}")
    if result["skipped"]:
        return "\n".join([*lines, "", f"Skipped: {result['skipped']}", ""])
    lines += ["", "| part | outcome | seconds | why |", "|---|---|---|---|"]
    for part in result["parts"]:
        outcome = "skipped" if part["skipped"] else "ok" if part["ok"] else "**failed**"
        lines.append(f"| {part['name']} | {outcome} | {part['seconds']:.0f} | {_cell(part['reason'])} |")
    for title, section in (("Contract tests", _contract), ("Cases", _cases), ("MPS", _mps),
                           ("Frameworks", _frameworks), ("Two trainings that do not fit together", _pair)):
        body = section(result, simulated)
        if body:
            lines += ["", f"## {title}", "", *body]
    return "\n".join(lines) + "\n"


def _cell(value):
    return str(value).replace("|", "\\|").replace("\n", " ")


def _table(head, rows):
    return ["| " + " | ".join(head) + " |", "|" + "---|" * len(head),
            *("| " + " | ".join(_cell(cell) for cell in row) + " |" for row in rows)]


def _contract(result, simulated):
    section = result.get("contract")
    if not section:
        return []
    lines = [", ".join(f"{count} {status}" for status, count in sorted(section.get("counts", {}).items())) + ".", ""]
    differences = section["differences"]
    lines += [f"### Differences from the simulated driver: {len(differences) or 'none'}", ""]
    if differences:
        lines += _table(("test", "question", "simulated", "here"),
                        ((f"{d['program']}: {d['test']}", d["question"], d["simulated"], d["real"])
                         for d in differences))
    theirs = {(o["program"], o["test"]): o for o in simulated or []}
    answers, figures, others = [], [], []
    for outcome in section["tests"]:
        other = theirs.get((outcome["program"], outcome["test"]), {"answers": {}, "measured": {}})
        name = f"{outcome['program']}: {outcome['test']}"
        answers += [(name, question, other["answers"].get(question, ""), answer)
                    for question, answer in outcome["answers"].items()]
        figures += [(name, what, other["measured"].get(what, ""), value)
                    for what, value in outcome["measured"].items()]
        if outcome["status"] != "passed":
            others.append((name, outcome["status"], outcome["message"]))
    lines += ["", "### Answers", "", *_table(("test", "question", "simulated", "here"), answers)]
    lines += ["", "### Figures", "", *_table(("test", "what", "simulated", "here"), figures)]
    lines += ["", "### Not passed", "", *_table(("test", "outcome", "why"), others)]
    return lines


def _cases(result, simulated):
    if not result["cases"]:
        return []
    return _table(("case", "outcome", "why", "figures"),
                  ((case["name"], "ok" if case["ok"] else "failed", case["reason"], json.dumps(case["figures"]))
                   for case in result["cases"]))


def _mps(result, simulated):
    section = result.get("mps")
    if not section:
        return []
    lines = [f"Two users: {section.get('users', 'not measured')}.", ""]
    lines += _table(("test", "outcome", "why", "answers"),
                    ((f"{o['program']}: {o['test']}", o["status"], o["message"], json.dumps(o["answers"]))
                     for o in section["tests"]))
    if section["answers_that_differ_from_without"]:
        lines += ["", "Other than without MPS:", "",
                  *_table(("test", "question", "without", "with"),
                          ((f"{d['program']}: {d['test']}", d["question"], d["simulated"], d["real"])
                           for d in section["answers_that_differ_from_without"]))]
    return lines


def _frameworks(result, simulated):
    rows = result.get("frameworks")
    if not rows:
        return []
    return _table(("PyTorch with", "alone", "under Sluice", "same bits", "leases"),
                  ((row["way"], _job(row.get("alone")), _job(row.get("under_sluice")), row.get("same_bits", ""),
                    row.get("leases", "")) for row in rows))


def _job(outcome):
    if not outcome:
        return "not run"
    if "failed" in outcome:
        return f"failed: {outcome['failed']}"
    return f"{1e3 * outcome['iteration_s']:.1f} ms, peak {outcome['peak_reserved_bytes'] >> 20} MiB"


PAIR_WAYS = [(f"sluice_{policy}{mps}", f"Sluice, `{policy}`, in the pool{', under MPS' if mps else ''}")
             for mps in ("", "_mps") for policy in pair.POLICIES] + \
            [("time_slicing", "time-slicing, all of the GPU"),
             ("time_slicing_in_the_pools_memory", "time-slicing, in the memory of the pool"), ("mps", "MPS, all of the GPU")]


def _speed(speed):
    return "" if speed is None else f"{speed:.3f}"


def _pair(result, simulated):
    section = result.get("pair")
    if not section or "one_after_the_other_s" not in section:
        return []
    lines = [f"Jobs: {'; '.join(section['jobs'])}. Pool: {section['pool_bytes'] >> 20} MiB, "
             f"{section['pool_over_sum_of_peaks']} of the sum of their peaks.", ""]
    rows = [("one after the other", f"{section['one_after_the_other_s']:.2f}", "1", "", "yes", "yes",
             "; ".join(map(_job, section["solo"])))]
    for key, name in PAIR_WAYS:
        outcome = section.get(key, {"not_run": ""})
        if "not_run" in outcome:
            rows.append((name, "", "", "", "not run", "", outcome["not_run"]))
        else:
            jobs = "; ".join(map(_job, outcome["jobs"])) + (f"; {outcome['chose']}" if outcome.get("chose") else "")
            rows.append((name, f"{outcome['wall_s']:.2f}", *(_speed(outcome.get(speed)) for speed in ("speed", "late_speed")),
                         "yes" if outcome["all_finished"] else "no", "yes" if outcome["same_bits"] else "no", jobs))
    if "sluice_alone" in section:
        lines += [f"Alone in the pool, recorded meanwhile: {'; '.join(map(_job, section['sluice_alone']))}.", ""]
    return lines + _table(("way", "seconds", "speed", "in the second half", "both finished", "same bits", "jobs"), rows)
