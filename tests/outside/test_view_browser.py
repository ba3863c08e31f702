"""The page in a real browser: it opens without a network, a slider moves, and bodies are drawn where the model says."""
import time

import numpy as np
import pytest
from browser import Browser, chromium  # noqa: F401  a mark asks for it

import liedyn as ld
from liedyn.look.planes import poses_of

pytestmark = pytest.mark.skipif("chromium() is None", reason="there is no chromium")
pytest.importorskip("viser")

from liedyn.look.solids import solids  # noqa: E402
from liedyn.look.solid_surfaces import triangles  # noqa: E402

LOADER = ld.load("loader")
WIDTH, HEIGHT = 760, 480


@pytest.fixture(scope="module")
def browser():
    with Browser(WIDTH, HEIGHT) as made:
        yield made


def foreign(browser):
    """What the page asked others for."""
    return [url for url in browser.requests if not url.startswith(("data:", "blob:", "file:", "http://127.0.0.1"))]


def box_of_difference(one, other):
    """Left, top, right and bottom of what differs between two pictures."""
    rows, columns = np.nonzero(np.abs(one - other).max(axis=2) > 24)
    return np.array([columns.min(), rows.min(), columns.max() + 1, rows.max() + 1])


def box_of_body(page, client, q, body):
    """The same of a body's solids, through the browser's own camera."""
    pose = poses_of(page.posture.robot, q)[body]
    corners = np.vstack([triangles(each)[0] for each in solids(page.posture.robot) if each.body == body])
    points = corners @ pose[:3, :3].T + pose[:3, 3]
    w, x, y, z = client.camera.wxyz
    R = np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                  [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                  [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]])
    seen = (points - client.camera.position) @ R  # x right, y down, z ahead
    focal = 0.5 * client.camera.image_height / np.tan(0.5 * client.camera.fov)
    pixels = focal * seen[:, :2] / seen[:, 2:] + 0.5 * np.array(
        [client.camera.image_width, client.camera.image_height])
    return np.concatenate([pixels.min(axis=0), pixels.max(axis=0)])


def drawn_box(browser, page, body):
    """The box of a body on the screen: what changes when it is hidden, with nothing before it."""
    for name, node in page.stage.bodies.items():
        node.visible = name == body
    shown = browser.settled()
    page.stage.bodies[body].visible = False
    found = box_of_difference(shown, browser.settled())
    for node in page.stage.bodies.values():
        node.visible = True
    return found


def slide(browser, name, text):
    """Types a number into the box beside a slider."""
    box = f"""[...document.querySelectorAll('input')].find(each => each.closest('div') && (() => {{
        let e = each; for (let k = 0; k < 8 && e; k++, e = e.parentElement)
            if (e.innerText && e.innerText.split('\\n')[0].trim() === {name!r}) return true; return false }})()
        && each.type !== 'hidden' && each.offsetWidth > 0)"""
    x, y = browser.place(box)
    browser.click(x, y)
    browser.command("Input.dispatchKeyEvent", type="keyDown", key="a", code="KeyA", modifiers=2,
                    windowsVirtualKeyCode=65, commands=["selectAll"])
    browser.type(text)
    browser.evaluate("document.activeElement.blur()")  # no caret that blinks


def test_a_slider_moves_bodies_to_where_the_model_says(browser):
    page = ld.view(LOADER, port=18090)
    try:
        browser.open(page.url)
        browser.until(lambda: "boom" in browser.text() and "rank of the rows" in browser.text(), 60)
        client = browser.until(lambda: next(iter(page.server.get_clients().values()), None))
        page.stage.show("floor", False)
        browser.evaluate("document.querySelectorAll('[class*=Notification-closeButton]').forEach(each => each.click())")
        browser.settled(60)
        before = page.posture.q.copy()
        slide(browser, "boom", "0.35")
        browser.until(lambda: abs(page.posture.value("boom") - 0.35) < 1e-6)
        q = page.posture.q
        assert np.abs(ld.closure_error(LOADER, q)).max() < 1e-11
        np.testing.assert_allclose(q, ld.close(LOADER, before, boom=0.35, bucket=0.0), atol=1e-9)
        for body in ("bellcrank", "bucket"):
            expected = box_of_body(page, client, q, body)
            np.testing.assert_allclose(drawn_box(browser, page, body), expected, atol=3.0)
            assert np.abs(expected - box_of_body(page, client, before, body)).max() > 30.0
        assert not foreign(browser) and not browser.errors
    finally:
        page.close()


def test_a_page_from_a_file_plays(browser, tmp_path):
    tr = ld.simulate(LOADER, LOADER.home, np.zeros(8), 0.3)
    file = ld.export_html(LOADER, tr, tmp_path / "run.html", speed=0.1)
    browser.requests.clear()
    browser.open(file.as_uri())
    browser.until(lambda: browser.evaluate("document.querySelectorAll('canvas').length > 0"), 60)
    time.sleep(1.0)
    seen = [browser.picture()]
    browser.until(lambda: (seen[0] != browser.picture()).any(axis=2).sum() > 500, 30)  # it moves
    assert browser.requests and not foreign(browser) and not browser.errors
