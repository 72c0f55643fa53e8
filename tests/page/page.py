"""The live page of `krane-demo` in a real browser: break things with its buttons, and see each heal or be explained.

usage: page.py KRANE [--shots FOLDER] [--docs]

Exit code 0: all is well; 1: something is not; 3: there is no Chromium to look with.
"""

import json
import re
import shutil
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Error, expect, sync_playwright

PATIENCE = 30_000  # milliseconds
MANY = 10_000
SLOWEST = 3_000  # milliseconds
PAGE_BUDGET = 100_000  # bytes, page with style and script
# What a table needs, and what it has.
TABLES = """() => [...document.querySelectorAll("table")].map((table) => {
    const parent = table.parentElement;
    return [table.className, table.getBoundingClientRect().right, parent.getBoundingClientRect().right];
})"""
# Watches how many seconds old the lag of any controller is said to be.
OLDEST_LAG = """() => {
    const seen = { oldest: 0 };
    const look = () => {
        for (const list of document.querySelectorAll("article.controller dl")) {
            const age = list.innerText.match(/ as of (\\d+) s ago/);
            if (age) seen.oldest = Math.max(seen.oldest, Number(age[1]));
        }
        requestAnimationFrame(look);
    };
    look();
    return seen;
}"""
# Milliseconds from the request of a page to its being drawn.
RENDERED = """() => new Promise((done) => requestAnimationFrame(() => setTimeout(() => {
    const [page] = performance.getEntriesByType("navigation");
    done(page.loadEventEnd - page.startTime);
})))"""
BOXES = """() => {
    const box = (selector, index) => document.querySelectorAll(selector)[index].getBoundingClientRect().toJSON();
    return [box(".buttons li", 0), box(".buttons li", 1), box(".kill button", 0)];
}"""


class Demo:
    """`krane-demo`, and what its API says."""

    def __init__(self, program: str, *arguments: str):
        self.process = subprocess.Popen([program, *arguments], stdout=subprocess.PIPE, text=True)
        for line in self.process.stdout:
            if found := re.search(r"live page\s+(http://\S+)", line):
                self.url = found[1]
                return
        sys.exit(f"{program} said no address of its page")

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

    def workload(self, controller: str) -> str:
        """Path of the page of one that is there."""
        everything = json.loads(self.get("api/v1/workloads"))["workloads"]
        one = next(it for it in everything if it["controller"] == controller)
        return f"workloads/{controller}/{one['namespace']}/{one['name']}"

    def press(self, browser, button: str):
        """Presses a button in a window of its own."""
        context = browser.new_context()
        page = context.new_page()
        page.goto(self.url)
        page.get_by_role("button", name=button, exact=True).click()
        expect(page.locator("#said")).not_to_be_empty()
        context.close()

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
        for width, height in [(360, 740), (1080, 800), (1280, 900)]:
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
            for name, right, room in page.evaluate(TABLES):
                assert right <= room + 1, f"the table {name} reaches {right - room} pixels into what is beside it at {width}"
            if shots:
                page.screenshot(path=shots / f"{scheme}-{width}.png", full_page=True)
            page.goto(demo.url + "log")
            expect(page.locator("#log li").first).to_be_visible()
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, f"log lines: {wide} pixels at a width of {width}"
            if shots:
                page.screenshot(path=shots / f"log-{scheme}-{width}.png")
            context.close()
    step("nothing scrolls sideways or lies on anything else, from 360 pixels on, light and dark")


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
    deployments = page.get_by_role("article", name="deployments").locator("dl")
    # What krane is told no longer, it cannot count: the page says how old its count is.
    seen = page.evaluate_handle(OLDEST_LAG)
    page.get_by_role("button", name="Cut the streams").click()
    ended = demo.wait_for_event(after, "stream_ended")
    demo.wait_for_event(ended["number"], "stream_opened")
    expect(deployments).to_contain_text("open", timeout=PATIENCE)
    expect(deployments).not_to_contain_text("as of", timeout=PATIENCE)
    oldest = seen.evaluate("seen => seen.oldest")
    assert oldest >= 1, f"the lag was never said to be older than {oldest} s"
    step(f"a stream that is cut opens again; its lag was {oldest} s old, and is of now again")


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
    expect(page.locator("#said")).to_contain_text("the story rests for a minute")
    expect(page.locator(".story .now")).to_contain_text("rests", timeout=PATIENCE)
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


def a_phone_shows_the_answer_where_the_finger_is(browser, demo, shots):
    context = browser.new_context(viewport={"width": 360, "height": 740}, is_mobile=True, has_touch=True)
    page = context.new_page()
    page.goto(demo.url)
    expect(page.locator("#link")).to_have_text("live")
    button = page.get_by_role("button", name="Crash a pod")
    button.scroll_into_view_if_needed()
    button.tap()
    said = page.get_by_role("status")
    expect(said).to_contain_text("was crashed", timeout=PATIENCE)
    expect(said).to_be_in_viewport(ratio=1)
    expect(button).to_be_in_viewport()
    expect(said).to_contain_text("it is back", timeout=PATIENCE)
    expect(said).to_be_in_viewport(ratio=1)
    covered = page.evaluate("""() => {
        const said = document.getElementById("said").getBoundingClientRect();
        return said.height / innerHeight;
    }""")
    assert covered <= 0.4, f"the answer covers {covered:.0%} of the screen"
    if shots:
        page.screenshot(path=shots / "phone-said.png")
    page.reload()
    expect(page.locator("#link")).to_have_text("live")
    expect(said).not_to_be_empty()
    expect(said).not_to_be_in_viewport()
    context.close()
    step("on a phone the answer to a button is on the screen, whichever button it was")


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


def accessible(page, where: str):
    """No rule of axe-core is broken; its script needs what the page's own policy does not allow."""
    broken = Axe().run(page).response["violations"]
    told = [f"{rule['id']}: {rule['help']}: {rule['nodes'][0]['html'][:120]}" for rule in broken]
    assert not told, f"{where}: {told}"


def nobody_is_kept_out(browser, demo):
    workload = demo.workload("deployments")
    for scheme in ["light", "dark"]:
        context = browser.new_context(color_scheme=scheme, bypass_csp=True)
        page = context.new_page()
        for path in ["", workload, "workloads/deployments/none/such", "log"]:
            page.goto(demo.url + path)
            accessible(page, f"{scheme} /{path}")
        context.close()
    step("axe-core finds nothing to complain about, light and dark")


def a_held_workload_says_who_owns_what_differs(browser, page, demo, pictures):
    page.get_by_role("button", name="Hold and edit").click()
    expect(page.locator("#said")).to_contain_text("was put on hold", timeout=PATIENCE)
    row = page.locator("table.workloads tr", has_text="held").first
    expect(row).to_be_visible(timeout=PATIENCE)
    row.locator("a.open").click()
    expect(page.locator(".verdict")).to_contain_text("is on hold", timeout=PATIENCE)
    field = page.locator(".diff tr", has_text="spec.template.spec.containers").first
    expect(field.locator(".owners")).to_have_text("kubectl-edit", timeout=PATIENCE)
    expect(field).to_contain_text("registry.example/somebody-elses:latest")
    expect(page.locator(".chain")).to_contain_text("is on hold")
    if pictures:
        for scheme in ["light", "dark"]:
            picture(browser, page.url, pictures / f"object-{scheme}.png", scheme, 1080, 900)
        picture(browser, page.url, pictures / "object-phone.png", "light", 390, 844)
    # The page of one workload follows it, too.
    demo.press(browser, "Restore")
    expect(page.locator(".diff")).to_have_count(0, timeout=PATIENCE)
    expect(page.locator(".verdict")).to_contain_text("is in place", timeout=PATIENCE)
    page.go_back()
    expect(page.locator("#link")).to_have_text("live")
    step("a held workload says which field differs and who owns it, and its page shows that it is given back")


def a_state_set_aside_has_a_page_that_says_why(browser, page, demo):
    deployments = page.get_by_role("article", name="deployments").locator("dl")
    # The story may have sent a bad state as well, so that the cursor is held back by more than this one.
    demo.press(browser, "Restore")
    expect(deployments).to_contain_text("no lag", timeout=PATIENCE)
    for _ in range(3):
        after = demo.newest()
        page.get_by_role("button", name="Send a bad state").click()
        event = demo.wait_for_event(after, "troubled", "quarantined")
        if event["controller"] == "deployments":
            break
    expect(deployments).to_contain_text(re.compile("lag [1-9]"), timeout=PATIENCE)
    namespace, name = event["object"].split("/")
    page.goto(f"{demo.url}workloads/deployments/{namespace}/{name}")
    expect(page.locator(".verdict")).to_contain_text("is set aside")
    for text in ["What to do", "failed", "next try"]:
        expect(page.locator("main")).to_contain_text(text)
    page.get_by_role("link", name="Log lines that name it").click()
    lines = page.locator("#log li")
    expect(lines.first).to_contain_text("cannot apply")
    page.keyboard.press("/")
    page.keyboard.press("End")
    page.keyboard.type(" error")
    expect(page).to_have_url(re.compile(r"\+error"))
    expect(lines.first).to_contain_text(f"key={namespace}/{name}")
    expect(page.locator("#log li:not(.bad)")).to_have_count(0)
    page.goto(demo.url)
    expect(page.locator("#link")).to_have_text("live")
    page.get_by_role("button", name="Restore").click()
    expect(deployments).to_contain_text("no lag", timeout=PATIENCE)
    step("a state set aside has a page that says why, and its log lines; the cursor waits below it, and its lag drains")


def lists_are_found_by_keyboard_and_address(page, demo):
    page.goto(demo.url)
    expect(page.locator("#link")).to_have_text("live")
    page.keyboard.press("/")
    page.keyboard.type("gate")
    rows = page.locator("table.workloads tbody tr")
    expect(rows.first).to_contain_text("gate")
    expect(page).to_have_url(re.compile(r"filter=gate"))
    expect(page.locator("table.workloads", has_text="network policy")).to_have_count(0, timeout=PATIENCE)
    page.locator("h2", has_text="Workloads").click()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator(".object-title")).to_contain_text("gate")
    page.goto(f"{demo.url}?sort=name&events=quarantined")
    expect(page.locator("[aria-sort]")).to_contain_text("Workload")
    step("workloads are found, ordered and opened without a mouse, and the address keeps it")


def ten_thousand_workloads_are_no_burden(browser, program):
    """The page while krane makes them; what it takes is printed, and limited generously: machines are noisy."""
    demo = Demo(program, "--apps", str(MANY))
    context = browser.new_context()
    try:
        page = context.new_page()
        deadline = time.monotonic() + PATIENCE / 1000
        while json.loads(demo.get("api/v1/workloads?limit=1"))["total"] < MANY and time.monotonic() < deadline:
            time.sleep(0.1)
        times = []
        for _ in range(5):
            page.goto(f"{demo.url}?sort=name&filter=app")
            expect(page.locator("#link")).to_have_text("live")
            times.append(page.evaluate(RENDERED))
        rows = page.locator("table.workloads tbody tr")
        expect(rows).to_have_count(100)
        expect(rows.first).to_contain_text("app-00000")
        start = time.monotonic()
        page.locator("a[rel=next]").first.click()
        expect(rows.first).to_contain_text("app-00100", timeout=PATIENCE)
        turned = (time.monotonic() - start) * 1000
        median = statistics.median(times)
        assert median < SLOWEST, f"the page takes {median:.0f} ms with {MANY} workloads"
        step(f"{MANY} workloads: the page is there after {median:.0f} ms, the next hundred after {turned:.0f} ms")
    finally:
        context.close()
        demo.stop()


def picture(browser, url, path, scheme, width, height, is_calm=False):
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    page = context.new_page()
    page.goto(url)
    expect(page.locator("#link")).to_have_text("live")
    if is_calm:
        expect(page.locator(".sentence")).to_have_text("Everything wanted is in place", timeout=PATIENCE)
    page.screenshot(path=path)
    context.close()


def main() -> int:
    arguments = sys.argv[1:]
    shots = None
    if "--shots" in arguments:
        at = arguments.index("--shots")
        shots = Path(arguments[at + 1])
        shots.mkdir(parents=True, exist_ok=True)
        del arguments[at : at + 2]
    pictures = None
    if "--docs" in arguments:
        arguments.remove("--docs")
        pictures = Path("docs/picture")
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
            nobody_is_kept_out(browser, demo)
            a_phone_shows_the_answer_where_the_finger_is(browser, demo, shots)
            if pictures:
                for scheme in ["light", "dark"]:
                    picture(browser, demo.url, pictures / f"page-{scheme}.png", scheme, 1280, 960, is_calm=True)
                picture(browser, demo.url, pictures / "page-phone.png", "dark", 390, 844, is_calm=True)
            an_actor_that_is_killed_runs_again(page, demo)
            a_held_workload_says_who_owns_what_differs(browser, page, demo, pictures)
            a_state_set_aside_has_a_page_that_says_why(browser, page, demo)
            a_stream_that_is_cut_opens_again(page, demo)
            a_bad_state_is_explained(page, demo)
            what_comes_of_a_button_is_said(page, demo)
            the_story_is_told(page)
            an_api_server_that_is_away_is_told(page, demo, shots)
            if shots:
                page.screenshot(path=shots / "last.png", full_page=True)
            lists_are_found_by_keyboard_and_address(page, demo)
            assert not said, f"the browser complains: {said}"
            page.close()
            the_page_comes_back_when_its_own_server_is_killed(browser, demo)
            demo.stop()
            ten_thousand_workloads_are_no_burden(browser, arguments[0])
        except AssertionError as error:
            print(f"  ✗ {error}")
            return 1
        finally:
            demo.stop()
            browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
