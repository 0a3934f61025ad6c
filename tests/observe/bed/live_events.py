# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""What the page's API says, as the page hears it: server-sent events, read in the background."""

import json
import threading
import urllib.request
from urllib.parse import urlsplit


def origin(url):
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def ask(url, path, token=None, body=None):
    """The JSON of an answer. Raises urllib.error.HTTPError."""
    request = urllib.request.Request(origin(url) + path, data=None if body is None else json.dumps(body).encode())
    if token:
        request.add_header("X-Sluice-Token", token)
    if body is not None:
        request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


class LiveEvents:
    """All messages since it was made, by their number."""

    def __init__(self, url, keep=True):
        self._answer = urllib.request.urlopen(origin(url) + "/api/live", timeout=30)
        self._keep = keep
        self._lock = threading.Lock()
        self._messages = {}
        self.heard = 0
        self._ended = False
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        event = None
        try:
            for line in self._answer:
                text = line.decode().rstrip("\n")
                if text.startswith("event: "):
                    event = text.removeprefix("event: ")
                elif text.startswith("data: ") and event in ("start", "live"):
                    self.heard += 1
                    if self._keep:
                        message = json.loads(text.removeprefix("data: "))
                        with self._lock:
                            self._messages[message["seq"]] = message
        except (OSError, ValueError, AttributeError):
            if not self._ended:
                raise

    def at(self, number):
        """The message with this number; None: not heard."""
        with self._lock:
            return self._messages.get(number)

    def frames(self):
        """What was held: {time: {job: units}}, all that was heard."""
        with self._lock:
            messages = list(self._messages.values())
        return {t: dict(zip(pairs[::2], pairs[1::2])) for message in messages for t, pairs in message["frames"]}

    def close(self):
        self._ended = True
        # Closing the answer alone would wait for the reader.
        self._answer.fp.raw._sock.shutdown(2)
        self._thread.join(10)
        self._answer.close()
