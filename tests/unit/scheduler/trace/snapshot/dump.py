# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Writes a pickle to stdout, for python_test.cc.

Usage: dump.py snapshot PROTOCOL    the shape of torch.cuda.memory._snapshot(): two iterations
       dump.py values PROTOCOL      one list with every kind of plain value
       dump.py code PROTOCOL        an object that would call os.getcwd when it is loaded
"""
import os
import pickle
import sys


def snapshot():
    frame = {"filename": "/home/user/modèle.py", "name": "forward", "line": 70000}
    frames = [frame, {"filename": "main.py", "name": "<module>", "line": 1}]
    base = 0x7F3A_0000_0000
    entries = []

    def add(action, addr, size, **more):
        # What one version of PyTorch writes; readers skip what they do not know.
        entries.append({"action": action, "addr": base + addr, "size": size, "stream": 0,
                        "time_us": 1_700_000_000_000_000 + 10 * len(entries), "compile_context": "N/A",
                        "user_metadata": "", "segment_pool_id": (0, 0), "frames": frames, **more})

    add("segment_alloc", 0, 2 << 20)
    add("alloc", 0, 4000)  # lives through both iterations
    for _ in range(2):
        add("alloc", 4096, 1000)
        add("alloc", 8192, 500)
        add("free_requested", 4096, 1000)
        add("free_completed", 4096, 1000)
        add("alloc", 4096, 70000)
        add("free_requested", 8192, 500)
        add("free_completed", 8192, 500)
        add("free_requested", 4096, 70000)
        add("free_completed", 4096, 70000)
    add("snapshot", 0, 0)
    return {
        "segments": [{"device": 0, "address": base, "total_size": 2 << 20, "is_expandable": False,
                      "blocks": [{"address": base, "size": 4096, "state": "active_allocated"}], "frames": frames}],
        "device_traces": [[], entries],
        "allocator_settings": {"max_split_size": -1, "garbage_collection_threshold": 0.0,
                               "expandable_segments": False, "last": None},
        "external_annotations": [],
    }


def values(protocol):
    plain = [None, True, False, 0, 255, 256, 65535, 65536, -1, -(2**31), 2**31, -(2**63), 2**63 - 1, 2**63, -(2**80),
             0.0, -1.5, 1e300, "", "text", "é\\\n€😀", "x" * 300, (), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), [], [1],
             list(range(2500)), {}, {"a": 1}, {str(i): i for i in range(2500)}]
    shared = ["shared"]
    # Protocols below 3 write bytes as a call.
    return plain + [shared, shared] + ([b"", b"bytes", b"y" * 300] if protocol >= 3 else [])


class Call:
    def __reduce__(self):
        return os.getcwd, ()


what, number = sys.argv[1], int(sys.argv[2])
data = {"snapshot": snapshot, "values": lambda: values(number), "code": Call}[what]()
pickle.dump(data, sys.stdout.buffer, protocol=number)
