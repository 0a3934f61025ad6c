# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""What /metrics says, read without Prometheus's own code."""

import re
import urllib.request

_SAMPLE = re.compile(r'^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$')
_LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"(?:,|$)')
_ESCAPE = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}


def scrape(port, host="127.0.0.1"):
    with urllib.request.urlopen(f"http://{host}:{port}/metrics", timeout=10) as answer:
        return answer.read().decode()


class Scrape:
    """{name: [(labels, value)]}, with the type of each family."""

    def __init__(self, text):
        self.samples = {}
        self.types = {}
        for line in text.splitlines():
            if line.startswith("# TYPE "):
                _, _, name, kind = line.split(" ")
                assert name not in self.types, f"{name} is there twice"
                self.types[name] = kind
            elif line and not line.startswith("#"):
                name, labels, value = _SAMPLE.match(line).groups()
                read = {key: re.sub(r'\\[\\"n]', lambda found: _ESCAPE[found[0]], text)
                        for key, text in _LABEL.findall(labels or "")}
                self.samples.setdefault(name, []).append((read, float(value)))
        for name, samples in self.samples.items():
            keys = [tuple(sorted(labels.items())) for labels, _ in samples]
            assert len(set(keys)) == len(keys), f"{name} has a sample twice"

    def of(self, name, **labels):
        """[(labels, value)] of those that have these labels."""
        return [(each, value) for each, value in self.samples.get(name, [])
                if all(each.get(key) == wanted for key, wanted in labels.items())]

    def sum(self, name, **labels):
        return sum(value for _, value in self.of(name, **labels))

    def one(self, name, **labels):
        (sample,) = self.of(name, **labels)
        return sample[1]
