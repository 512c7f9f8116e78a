"""The page in a real browser, where Playwright and Chromium are installed."""

import os
import shutil
import threading
import time

import pytest
import uvicorn
from letters import Letters
from newsembed.serving import server
from test_routes import make_index

playwright = pytest.importorskip(
    "playwright.sync_api", reason="the page's tests need Playwright; `make browser` installs it"
)


@pytest.fixture(scope="module")
def address():
    app = server.create_app(server.Service(Letters(), make_index()))
    running = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
    thread = threading.Thread(target=running.run)
    thread.start()
    while not running.started:
        time.sleep(0.01)
    yield f"http://localhost:{running.servers[0].sockets[0].getsockname()[1]}/"
    running.should_exit = True
    thread.join()


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        path = shutil.which("chromium") or started.chromium.executable_path
        if not os.path.exists(path):
            pytest.skip("the page's tests need Chromium; `make browser` installs it")
        browser = started.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(browser, request):
    context = browser.new_context(viewport=getattr(request, "param", {"width": 1200, "height": 800}))
    page = context.new_page()
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    yield page
    context.close()
    assert not problems


def test_the_last_week_then_earlier_ones(page, address):
    page.goto(address)
    page.wait_for_selector(".brief")
    assert page.locator(".card.lead h2").all_inner_texts() == ["aaab"]
    assert page.locator(".brief .open > span:first-child").all_inner_texts() == ["qqqq", "zzzz"]
    page.goto(f"{address}?since=2024-05-01&until=2024-05-02")
    playwright.expect(page.locator(".brief")).to_have_count(1)
    assert "3 reports" in page.locator(".card.lead").inner_text()
    page.keyboard.press("]")
    page.wait_for_selector(".empty")
    assert "since=2024-05-03" in page.url
    page.get_by_role("button", name="Show the latest events").click()
    page.wait_for_selector(".card")


def test_search_marks_and_leads_to_the_event(page, address):
    page.goto(address)
    page.keyboard.press("/")
    page.keyboard.type("aaac")
    page.keyboard.press("Enter")
    page.wait_for_selector(".hits > li")
    assert page.locator(".hits .title").first.inner_text() == "aaac"
    page.get_by_role("button", name="same event").first.click()
    page.wait_for_selector("#panel .reports li")
    assert "3 reports · 3 publishers" in page.inner_text("#panel")
    assert page.locator(".hits > li").first.locator("details li").count() == 2  # the other reports of its event
    page.get_by_role("button", name="Close").click()
    page.get_by_role("button", name="two.example").click()
    playwright.expect(page.locator("#content .hits .title")).to_have_count(1)
    page.get_by_role("button", name="Remove the filter two.example").click()
    playwright.expect(page.locator("#content .hits .title")).not_to_have_count(1)


def test_a_query_that_nothing_answers_says_so_and_shows_the_nearest_on_request(page, address):
    def without_match(route):
        answer = route.fetch()
        route.fulfill(response=answer, json=answer.json() | {"matches": False})

    page.route("**/search?*", without_match)
    page.goto(f"{address}?q=aaac")
    page.wait_for_selector(".empty")
    assert page.inner_text(".empty").startswith("Nothing matches.")
    assert "no article in" in page.inner_text("#message")
    assert page.locator(".hits").count() == 0
    page.get_by_role("button", name="Show the nearest articles").click()
    page.wait_for_selector(".hits > li")


@pytest.mark.parametrize("page", [{"width": 360, "height": 740}], indirect=True)
def test_nothing_is_wider_than_a_phone(page, address):
    for view in ("", "?since=2024-05-01&until=2024-05-20", "?q=aaac", "?view=map&since=2024-05-01&until=2024-05-20"):
        page.goto(address + view)
        page.wait_for_selector(".card, .hits, .map")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
