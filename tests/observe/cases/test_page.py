# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""The live page in a real browser, before two trainings that lend, and before none, one and 64 jobs that are made up.

With SLUICE_PICTURES=1 the pictures of docs/ are made anew.
"""

import json
import os
import time
import urllib.error
from urllib.parse import urlsplit

import pytest

from bed.browser import Browser
from bed.live_events import LiveEvents, ask, origin
from bed.stand import Stand
from bed.workstation import REPOSITORY, Workstation, cpu_seconds

LIVE = "document.body.dataset.state === 'live' && document.querySelectorAll('#table-body tr').length"


@pytest.fixture(scope="module")
def workstation(tmp_path_factory):
    station = Workstation(tmp_path_factory.mktemp("page"))
    try:
        station.up()
        station.train("small-a", "small-a", 1)
        station.train("small-b", "small-b", 2)
        yield station
    finally:
        station.down()


@pytest.fixture(scope="module")
def url(workstation):
    return workstation.page()


@pytest.fixture
def browser(tmp_path):
    with Browser(tmp_path / "profile") as opened:
        yield opened


def expect_clean(browser, url):
    """The page wrote no error or warning to its console, and asked its own host alone."""
    assert browser.console == []
    hosts = {urlsplit(request).netloc for request in browser.requests}
    assert hosts == {urlsplit(url).netloc}, hosts


def table(browser):
    """{job: {column: exact figure}}"""
    return {int(job): cells for job, cells in browser.run("""
        Object.fromEntries([...document.querySelectorAll('#table-body tr')].map((row) => [row.dataset.job,
            Object.fromEntries([...row.querySelectorAll('td[data-value]')].map((cell) => [cell.dataset.key, cell.dataset.value]))]))
        """).items()}


def figure(browser, selector):
    return int(browser.run(f"document.querySelector({json.dumps(selector)}).dataset.value"))


def wait_for_both(workstation, browser):
    """Both trainings are known to the page, with profiles, and lend."""
    browser.until("document.querySelectorAll('#table-body tr').length === 2", 60)
    deadline = time.monotonic() + 90
    while not all(job["profile"] for job in workstation.status()["jobs"]):
        assert time.monotonic() < deadline, workstation.status()
        time.sleep(0.2)
    # With its profile a job gets its limit; the page hears of it a moment later.
    limits = {str(job["id"]): str(job["limit_bytes"]) for job in workstation.status()["jobs"]}
    for job, limit in limits.items():
        browser.until(f"document.querySelector('tr[data-job=\"{job}\"] [data-key=limit]').dataset.value === '{limit}'")


def test_address_is_this_machines_and_the_same_for_all_who_ask(workstation, url):
    parts = urlsplit(url)
    assert parts.hostname == "127.0.0.1"
    assert parts.fragment.startswith("token=")
    assert workstation.page() == url
    assert (workstation.runtime / "page.json").stat().st_mode & 0o777 == 0o600


def test_values_equal_the_api_and_the_daemon(workstation, url, browser):
    events = LiveEvents(url)
    browser.open(url)
    wait_for_both(workstation, browser)
    browser.run("document.querySelector('#pause').click()")
    number = int(browser.run("document.body.dataset.seq"))
    assert browser.run("document.querySelector('#table-body').dataset.seq") == str(number)
    message = events.at(number)
    assert message, f"the page shows {number}, which the API never said"

    shown = table(browser)
    assert set(shown) == {job["id"] for job in message["jobs"]}
    for job in message["jobs"]:
        for key, text in shown[job["id"]].items():
            assert text == str(job[key]), (job["id"], key)
        assert {"held", "live", "claim", "limit", "request", "base", "lent", "borrowed"} <= set(shown[job["id"]])
    for selector, key in (("#sum-held", "held"), ("#sum-free", "free"), ("#sum-lent", "lent"), ("#sum-pool", "pool"), ("#read-held", "held")):
        assert figure(browser, selector) == message[key], selector
    assert browser.run("document.querySelector('#policy-now').textContent") == message["policy"]
    assert browser.run("document.querySelector('#waits').dataset.count") == str(sum(job["waits_for"] != "" for job in message["jobs"]))

    status = workstation.status()
    assert message["pool"] == status["pool_bytes"] and message["budget"] == status["budget_bytes"]
    assert message["policy"] == status["policy"] and message["lanes"] == status["lanes"]
    jobs = {job["id"]: job for job in status["jobs"]}
    for job in message["jobs"]:
        assert job["name"] == jobs[job["id"]]["name"]
        assert job["limit"] == jobs[job["id"]]["limit_bytes"]
    details = ask(url, f"/api/jobs/{message['jobs'][0]['id']}?gpu=0")
    assert details["job"]["name"] == message["jobs"][0]["name"]
    events.close()
    expect_clean(browser, url)


def test_cursor_shows_what_was_held(workstation, url, browser):
    events = LiveEvents(url)
    browser.open(url)
    wait_for_both(workstation, browser)
    time.sleep(3)
    browser.run("document.querySelector('#plot').focus()")
    browser.press(" ")
    browser.until("document.body.dataset.state === 'paused'")
    unit = events.at(int(browser.run("document.body.dataset.seq")))["unit"]
    now = int(browser.run("document.body.dataset.now"))
    seen = set()
    for _ in range(5):
        browser.press("ArrowLeft")
        moment = now + int(browser.run("document.querySelector('#plot').getAttribute('aria-valuenow')"))
        frames = events.frames()
        held = frames[max(t for t in frames if t <= moment)]
        for lane in browser.run("[...document.querySelectorAll('.lane')].map((lane) => [lane.dataset.job, lane.querySelector('.bytes').dataset.value])"):
            assert int(lane[1]) == held.get(int(lane[0]), 0) * unit, (moment, lane)
        assert figure(browser, "#read-held") == sum(held.values()) * unit
        seen.add(moment)
    assert len(seen) == 5, "the cursor moved"
    assert browser.run("document.querySelector('#plot').getAttribute('aria-valuetext')").endswith("iB")
    browser.press("Escape")
    assert browser.run("document.querySelector('#read-time').textContent") == "paused"
    events.close()
    expect_clean(browser, url)


def test_everything_by_keyboard(workstation, url, browser):
    browser.open(url)
    wait_for_both(workstation, browser)
    browser.press("Tab")
    assert browser.run("document.activeElement.textContent") == "Skip to the memory chart"
    browser.press("Enter")
    browser.until("document.activeElement.id === 'memory'")

    browser.tab_to("#window input")
    browser.press("ArrowLeft")
    assert browser.run("document.querySelector('#window input:checked').value") == "10"
    browser.tab_to("#pause")
    browser.press("Enter")
    browser.until("document.body.dataset.state === 'paused'")
    browser.press(" ")
    browser.until("document.body.dataset.state === 'live'")
    browser.tab_to("#plot")
    assert browser.run("getComputedStyle(document.activeElement).outlineStyle") != "none", "focus is seen"
    browser.press("ArrowLeft", shift=True)
    assert browser.run("document.querySelector('#plot').getAttribute('aria-valuenow')") == "-1000"

    browser.tab_to("#filter")
    browser.type("small-b")
    browser.until("document.querySelectorAll('#table-body tr').length === 1")
    browser.tab_to("th button")
    browser.press("Enter")
    assert browser.run("document.querySelector('th[aria-sort]').getAttribute('aria-sort')") == "descending"
    browser.tab_to("td .job")
    browser.press("Enter")
    browser.until("document.querySelector('#details').open && document.querySelector('#details-body dl') !== null")
    browser.press("Escape")
    browser.until("!document.querySelector('#details').open")
    assert browser.run("document.activeElement.matches('td .job')"), "focus is where it was"
    expect_clean(browser, url)


def test_policy_is_changed_by_keyboard_and_for_good(workstation, url, browser):
    browser.open(url)
    browser.until("document.querySelector('#policy-open').disabled === false", 30)
    browser.tab_to("#policy-open")
    browser.press("Enter")
    browser.until("document.querySelector('#policy-dialog').open")
    before = workstation.status()["policy"]
    if not browser.run("document.activeElement.matches('#policy')"):
        browser.tab_to("#policy")
    browser.press("ArrowDown")
    wanted = browser.run("document.querySelector('#policy').value")
    assert wanted != before
    browser.tab_to("#lane-count")
    browser.press("Enter")
    assert browser.run("document.querySelector('#policy-next').textContent") == "Yes, change it"
    assert workstation.status()["policy"] == before, "nothing before it is confirmed"
    browser.press("Enter")
    browser.until("!document.querySelector('#policy-dialog').open")
    assert workstation.status()["policy"] == wanted
    browser.until(f"document.querySelector('#policy-now').textContent === {json.dumps(wanted)}")
    assert wanted in browser.run("document.querySelector('#summary').textContent"), "is said"
    assert "policy flow" in workstation.sluice("policy", "flow").stdout
    expect_clean(browser, url)


def test_without_the_token_it_is_to_look_at(workstation, url, browser):
    browser.open(origin(url) + "/")
    browser.until(LIVE, 30)
    browser.until("document.querySelector('#access').textContent.startsWith('Read-only')")
    assert browser.run("document.querySelector('#policy-open').disabled")
    assert "sluice page" in browser.run("document.querySelector('#policy-why').textContent")
    with pytest.raises(urllib.error.HTTPError) as refused:
        ask(url, "/api/policy", body={"gpu": 0, "policy": "temporal", "lanes": 1})
    assert refused.value.code == 403
    expect_clean(browser, url)


def test_token_leaves_the_address(workstation, url, browser):
    browser.open(url)
    browser.until(LIVE, 30)
    assert browser.run("location.hash") == ""
    assert all("token" not in request for request in browser.requests[1:])
    browser.open("about:blank")
    browser.open(origin(url) + "/")
    browser.until("document.querySelector('#policy-open').disabled === false", 30)


def luminance(colour):
    channels = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_both_schemes_can_be_read(workstation, url, browser, scheme):
    browser.prefer(prefers_color_scheme=scheme)
    browser.open(url)
    wait_for_both(workstation, browser)
    assert browser.run("getComputedStyle(document.documentElement).colorScheme") == scheme
    colour = {name: browser.run(f"getComputedStyle(document.documentElement).getPropertyValue('--{name}').trim()")
              for name in ("panel", "page", "text", "quiet", "accent", "on-accent", "good", "warn", "bad")}

    def contrast(one, other):
        lighter, darker = sorted((luminance(colour[one]), luminance(colour[other])), reverse=True)
        return (lighter + 0.05) / (darker + 0.05)

    for name in ("text", "quiet", "accent", "good", "warn", "bad"):
        for ground in ("panel", "page"):
            assert contrast(name, ground) >= 4.5, (scheme, name, ground)
    assert contrast("on-accent", "accent") >= 4.5
    # The switch goes before what the system says.
    other = {"light": "dark", "dark": "light"}[scheme]
    browser.run(f"document.querySelector('#theme input[value={other}]').click()")
    assert browser.run("getComputedStyle(document.documentElement).colorScheme") == other
    browser.run("document.querySelector('#theme input[value=auto]').click()")
    if os.environ.get("SLUICE_PICTURES"):
        browser.resize(1360, 1100)
        browser.run("document.querySelector('#window input').click()")
        time.sleep(12)
        browser.until("document.querySelector('#loans path') !== null", 30)
        browser.picture(REPOSITORY / f"docs/page-{scheme}.png")
    expect_clean(browser, url)


@pytest.mark.parametrize("jobs", [1, 64])
def test_with_few_and_with_many(browser, jobs):
    with Stand(jobs) as stand:
        events = LiveEvents(stand.url)
        browser.open(stand.url)
        browser.until(f"document.querySelectorAll('#table-body tr').length === {jobs}", 30)
        time.sleep(2)
        lanes = browser.run("[...document.querySelectorAll('.lane')].map((lane) => lane.dataset.job)")
        assert lanes == (["1"] if jobs == 1 else [str(job) for job in range(1, 9)] + ["others"])

        # Nothing jumps while figures change, and drawing them costs a bounded time, whatever else the machine does.
        boxes = """JSON.stringify([...document.querySelectorAll('.figure, .panel, .lane, .head, #plot, .bar > *')]
            .map((element) => Object.values(element.getBoundingClientRect().toJSON())))"""
        before, busy = browser.run(boxes), browser.busy_seconds()
        frames = browser.run("""new Promise((resolve) => { let count = 0; const begin = performance.now();
            const next = () => { ++count; performance.now() - begin < 4000 ? requestAnimationFrame(next) : resolve(count); };
            requestAnimationFrame(next); })""")
        each = (browser.busy_seconds() - busy) / frames * 1000
        assert browser.run(boxes) == before
        print(f"{jobs} jobs: {frames / 4:.0f} frames a second, {each:.1f} ms of the page's thread for each")
        assert each < 100

        browser.run("document.querySelector('#pause').click()")
        message = events.at(int(browser.run("document.body.dataset.seq")))
        held = {job["id"]: job["held"] for job in message["jobs"]}
        bands = dict(browser.run("[...document.querySelectorAll('.lane')].map((lane) => [lane.dataset.job, Number(lane.querySelector('.bytes').dataset.value)])"))
        others = bands.pop("others", 0)
        assert {int(job): value for job, value in bands.items()} == {job: held[job] for job in map(int, bands)}
        assert sum(bands.values()) + others == sum(held.values()) == message["held"]
        assert {job: int(cells["held"]) for job, cells in table(browser).items()} == held
        events.close()

        if jobs > 1:
            browser.run("document.querySelector('#filter').focus()")
            browser.type("whisper-small-3")
            browser.until("document.querySelectorAll('#table-body tr').length === 1")
            assert browser.run("document.querySelector('#jobs-count').textContent").startswith("1 of 64 jobs")
            browser.type("x")
            browser.until("!document.querySelector('#table-none').hidden")
        expect_clean(browser, stand.url)


def test_no_job_no_daemon_and_back(browser):
    with Stand(0) as stand:
        browser.open(stand.url)
        browser.until("document.querySelector('#cover-title').textContent === 'No job yet'", 30)
        assert browser.run("document.querySelector('#cover-code').textContent") == "sluice run -- python train.py"
        stand.say("jobs 2")
        browser.until("document.querySelector('#cover').hidden && document.querySelectorAll('.lane').length === 2")
        stand.say("down")
        browser.until("document.body.dataset.state === 'gone' && !document.querySelector('#cover').hidden")
        assert "no daemon runs in /run/made-up" in browser.run("document.querySelector('#cover-text').textContent.toLowerCase()")
        assert browser.run("document.querySelector('#policy-open').disabled")
        stand.say("up")
        browser.until(LIVE)
        expect_clean(browser, stand.url)


def test_motion_that_nobody_wants_is_left_out(browser):
    with Stand(2) as stand:
        browser.prefer(prefers_reduced_motion="reduce")
        browser.open(stand.url)
        browser.until(LIVE, 30)
        browser.run("""(() => { window.drawn = 0; const clear = CanvasRenderingContext2D.prototype.clearRect;
            CanvasRenderingContext2D.prototype.clearRect = function (...box) { if (this.canvas.id === 'chart') ++window.drawn; clear.apply(this, box); }; })()""")
        time.sleep(3)
        assert 1 <= browser.run("window.drawn") <= 4
        assert browser.run("getComputedStyle(document.querySelector('#pause')).transitionDuration") == "0s"


def test_seventeenth_viewer_is_told(browser):
    with Stand(1) as stand:
        viewers = [LiveEvents(stand.url, keep=False) for _ in range(16)]
        browser.open(stand.url)
        browser.until("document.body.dataset.state === 'refused'", 30)
        assert "16 look at this page already" in browser.run("document.querySelector('#cover-text').textContent")
        viewers.pop().close()
        browser.until(LIVE, 30)
        for viewer in viewers:
            viewer.close()


def test_one_viewer_costs_less_than_a_hundredth_of_a_core(workstation, url):
    """CPU time over 20 s each, of daemon and gateway, without and with a viewer, the trainings at work."""
    gateway = workstation.gateway_pid()

    def used(seconds):
        before = cpu_seconds(workstation.daemon.pid), cpu_seconds(gateway)
        time.sleep(seconds)
        after = cpu_seconds(workstation.daemon.pid), cpu_seconds(gateway)
        return [(b - a) / seconds * 100 for a, b in zip(before, after)]

    # What it is about is small beside what moves by itself, so in turns.
    alone, looked_at, heard = [0.0, 0.0], [0.0, 0.0], 0
    for _ in range(4):
        alone = [sum(pair) for pair in zip(alone, used(5))]
        viewer = LiveEvents(url, keep=False)
        looked_at = [sum(pair) for pair in zip(looked_at, used(5))]
        heard += viewer.heard
        viewer.close()
    alone, looked_at = [each / 4 for each in alone], [each / 4 for each in looked_at]
    # A busy machine tells less often: what it would cost at the full rate counts.
    looked_at = [before + (during - before) * 200 / heard for before, during in zip(alone, looked_at)]
    print(f"\none viewer, {heard / 20:.1f} messages a second; % of a core: daemon {alone[0]:.2f} -> {looked_at[0]:.2f}, "
          f"gateway {alone[1]:.2f} -> {looked_at[1]:.2f}")
    assert heard >= 100, "10 Hz, or half of it on a busy machine"
    assert looked_at[0] - alone[0] < 1.0
    assert alone[1] < 0.2, "nothing is asked while nobody looks"
    assert looked_at[1] < 1.0
