"""The live page of `krane demo` in a real browser: break things with its buttons, and see each heal or be explained.

usage: page.py KRANE [--shots FOLDER]

Exit code 0: all is well; 1: something is not; 3: there is no Chromium to look with.
"""

import json
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from playwright.sync_api import Error, expect, sync_playwright

PATIENCE = 30_000  # milliseconds
PAGE_BUDGET = 100_000  # bytes, page with style and script
BOXES = """() => {
    const box = (selector, index) => document.querySelectorAll(selector)[index].getBoundingClientRect().toJSON();
    return [box(".buttons li", 0), box(".buttons li", 1), box(".kill button", 0)];
}"""


class Demo:
    """`krane demo`, and what its API says."""

    def __init__(self, krane: str):
        self.process = subprocess.Popen([krane, "demo"], stdout=subprocess.PIPE, text=True)
        for line in self.process.stdout:
            if found := re.search(r"live page\s+(http://\S+)", line):
                self.url = found[1]
                return
        sys.exit(f"{krane} demo said no address of its page")

    def get(self, path: str) -> bytes:
        with urllib.request.urlopen(self.url + path, timeout=10) as answer:
            return answer.read()

    def newest(self) -> int:
        events = json.loads(self.get("api/v1/events"))["events"]
        return events[0]["number"] if events else 0

    def wait_for_event(self, after: int, kind: str, part: str = "") -> dict:
        deadline = time.monotonic() + PATIENCE / 1000
        while time.monotonic() < deadline:
            for event in json.loads(self.get(f"api/v1/events?after={after}"))["events"]:
                if event["kind"] == kind and part in json.dumps(event):
                    return event
            time.sleep(0.1)
        raise AssertionError(f"no event {kind} {part} after {after}")

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            self.process.kill()


def launch(playwright):
    """Playwright's own browser, or the system's."""
    system = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)
    for path in [None, system]:
        try:
            return playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        except Error:
            continue
    sys.exit(3)


def step(text: str):
    print(f"  ✔ {text}", flush=True)


def all_is_there_without_a_script(browser, demo):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(demo.url)
    for text in ["reconciler", "heartbeat", "What happened", "in place"]:
        expect(page.locator("main")).to_contain_text(text)
    page.get_by_role("button", name="Cut the streams").click()
    expect(page.locator("#said")).not_to_be_empty()
    context.close()
    size = sum(len(demo.get(path)) for path in ["", "assets/page.css", "assets/page.js"])
    assert size <= PAGE_BUDGET, f"the page weighs {size} bytes"
    step(f"everything is there without a script, buttons included; {size // 1000} kB in all")


def nothing_is_wider_than_a_phone(browser, demo, shots):
    for scheme in ["light", "dark"]:
        for width, height in [(360, 740), (1280, 900)]:
            context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
            page = context.new_page()
            page.goto(demo.url)
            expect(page.locator("#link")).to_have_text("live")
            wide = page.evaluate("document.documentElement.scrollWidth")
            if width < 640:
                # Measured in one turn of the page's script: between two, news replaces the rows.
                first, second, kill = page.evaluate(BOXES)
                assert first["y"] == second["y"], "the buttons are in two columns"
                assert kill["height"] >= 32, f"a finger does not hit {kill['height']} pixels"
            assert wide <= width, f"{wide} pixels at a width of {width}"
            if shots:
                page.screenshot(path=shots / f"{scheme}-{width}.png", full_page=True)
            context.close()
    step("nothing scrolls sideways at 360 pixels, light and dark")


def an_actor_that_is_killed_runs_again(page, demo):
    path = "root/deployments/intake/resync"
    row = page.locator("tr", has=page.get_by_role("button", name=f"Kill {path}", exact=True))
    before = int(row.locator(".restarts b, .restarts .dim").first.inner_text())
    after = demo.newest()
    row.get_by_role("button").click()
    demo.wait_for_event(after, "actor_failed", path)
    demo.wait_for_event(after, "actor_restarted", path)
    expect(row.locator(".restarts b")).not_to_have_text(str(before), timeout=PATIENCE)
    expect(row.locator(".state")).to_contain_text("idle", timeout=PATIENCE)
    expect(page.locator("#said")).to_contain_text("krane starts it again", timeout=PATIENCE)
    expect(page.locator("#said")).to_be_in_viewport()
    expect(page.locator("#events")).to_contain_text(path, timeout=PATIENCE)
    step("an actor that is killed runs again, and the page shows it without a reload")


def a_stream_that_is_cut_opens_again(page, demo):
    after = demo.newest()
    page.get_by_role("button", name="Cut the streams").click()
    ended = demo.wait_for_event(after, "stream_ended")
    demo.wait_for_event(ended["number"], "stream_opened")
    expect(page.get_by_role("article", name="deployments").locator("dl")).to_contain_text("open", timeout=PATIENCE)
    step("a stream that is cut opens again")


def a_bad_state_is_explained(page, demo):
    after = demo.newest()
    page.get_by_role("button", name="Send a bad state").click()
    event = demo.wait_for_event(after, "troubled", "quarantined")
    entry = page.locator(".events li", has_text="quarantined").first
    expect(entry).to_contain_text(event["object"], timeout=PATIENCE)
    # The demo's own story may have set aside another one meanwhile.
    problem = page.locator(".problem.bad", has_text=event["object"])
    expect(problem).to_contain_text("What to do", timeout=PATIENCE)
    expect(page.locator(".sentence")).to_contain_text("set aside", timeout=PATIENCE)
    page.get_by_role("button", name="Restore").click()
    expect(problem).to_have_count(0, timeout=PATIENCE)
    step("a bad state is set aside, explained with what to do, and replaced")


def what_comes_of_a_button_is_said(page, demo):
    said = page.locator("#said")
    page.get_by_role("button", name="Edit an object").click()
    expect(said).to_contain_text("was edited by hand: another image", timeout=PATIENCE)
    expect(said).to_contain_text("krane undoes it", timeout=PATIENCE)
    page.get_by_role("button", name="Crash a pod").click()
    expect(said).to_contain_text("it is back", timeout=PATIENCE)
    step("a button's words go on with what came of it")


def an_api_server_that_is_away_is_told(page, demo, shots):
    sentence = page.locator(".sentence")
    page.get_by_role("button", name="Take the API server away").click()
    expect(sentence).not_to_contain_text("in place", timeout=3_000)
    expect(page.locator("[data-part=workloads]")).to_contain_text("as of", timeout=PATIENCE)
    expect(sentence).to_contain_text("The Kubernetes API does not answer", timeout=PATIENCE)
    problem = page.locator(".problem", has_text="The Kubernetes API does not answer")
    expect(page.locator("#said")).to_contain_text("the story waits until Restore is pressed")
    for text in ["as of", "UTC", "nothing is lost"]:
        expect(problem).to_contain_text(text)
    expect(page.get_by_role("article", name="deployments").locator("dl")).to_contain_text("0 of 5 work")
    if shots:
        page.screenshot(path=shots / "away.png", full_page=True)
    page.get_by_role("button", name="Restore").click()
    expect(problem).to_have_count(0, timeout=PATIENCE)
    expect(page.get_by_role("article", name="deployments").locator("dl")).to_contain_text("all 5 work", timeout=PATIENCE)
    expect(page.locator("#said")).to_contain_text("has everything in place and reported again", timeout=PATIENCE)
    step("an API server that is away is told with the time of what is shown, and forgotten when it is back")


def the_story_is_told(page):
    expect(page.locator("#demo")).to_contain_text("A story goes on by itself")
    now = page.locator(".story .now")
    expect(now).to_contain_text("Now: ", timeout=PATIENCE)
    before = now.inner_text()
    expect(now).not_to_have_text(before, timeout=PATIENCE)
    step("the page says what the story does by itself, and follows it")


def the_page_comes_back_when_its_own_server_is_killed(browser, demo):
    context = browser.new_context()
    page = context.new_page()
    page.goto(demo.url)
    expect(page.locator("#link")).to_have_text("live")
    page.get_by_role("button", name="Kill root/servers/admin", exact=True).click()
    expect(page.locator("#said")).to_contain_text("was killed; the page is back", timeout=PATIENCE)
    expect(page.locator("#link")).to_have_text("live")
    context.close()
    step("the server of the page is killed, and the page says that it is back")


def main() -> int:
    arguments = sys.argv[1:]
    shots = None
    if "--shots" in arguments:
        at = arguments.index("--shots")
        shots = Path(arguments[at + 1])
        shots.mkdir(parents=True, exist_ok=True)
        del arguments[at : at + 2]
    if len(arguments) != 1:
        print(__doc__)
        return 2
    with sync_playwright() as playwright:
        browser = launch(playwright)
        demo = Demo(arguments[0])
        try:
            all_is_there_without_a_script(browser, demo)
            nothing_is_wider_than_a_phone(browser, demo, shots)
            page = browser.new_page()
            said = []
            page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
            page.on("pageerror", lambda error: said.append(str(error)))
            page.goto(demo.url)
            expect(page.locator("#link")).to_have_text("live")
            an_actor_that_is_killed_runs_again(page, demo)
            a_stream_that_is_cut_opens_again(page, demo)
            a_bad_state_is_explained(page, demo)
            what_comes_of_a_button_is_said(page, demo)
            the_story_is_told(page)
            an_api_server_that_is_away_is_told(page, demo, shots)
            if shots:
                page.screenshot(path=shots / "last.png", full_page=True)
            assert not said, f"the browser complains: {said}"
            page.close()
            the_page_comes_back_when_its_own_server_is_killed(browser, demo)
        except AssertionError as error:
            print(f"  ✗ {error}")
            return 1
        finally:
            demo.stop()
            browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
