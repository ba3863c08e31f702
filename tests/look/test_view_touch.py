"""Bodies dragged on the page while the mechanism moves: without a browser, and with the mouse of a real one."""
import time
import types

import numpy as np
import pytest
from browser import Browser, chromium  # noqa: F401  a mark asks for it

import liedyn as ld
from liedyn.look.viewer.play import Play

CART = ld.load("shopping_cart")


def until(ask, seconds=60.0):
    return Browser.until(ask, seconds)


@pytest.fixture
def play():
    made = []

    def of(robot):
        made.append(Play(robot, robot.home))
        made[0].start()
        return made[0]
    yield of
    made[0].stop()


def test_a_hand_pulls_and_constraints_are_switched(play):
    """The cart's caster sticks and lets go while the cart is drawn aside."""
    found, answers = play(CART), []
    found.grab("basket", [0.9, 0.0, 0.0])
    found.pull([1.5, 0.5, 0.0])
    until(lambda: found.hand is not None and np.linalg.norm(found.hand[0] - found.hand[1]) < 1e-3)
    found.switch("stick", True, answers.append)
    until(lambda: found.stepper.active == ("rear", "wheel", "stick"))
    angle = found.q[3]
    found.pull([2.5, 0.0, 0.0])
    time.sleep(0.3)
    assert found.q[3] == pytest.approx(angle, abs=1e-9)
    found.switch("stick", False, answers.append)
    until(lambda: abs(found.q[3] - angle) > 1e-3)
    found.let_go()
    until(lambda: found.hand is None)
    found.switch("sticky", True, answers.append)
    until(lambda: len(answers) == 3)
    assert answers[:2] == [None, None] and "did you mean 'stick'?" in str(answers[2])
    found.stop()
    assert not found.running and 0.5 < found.loop.factor <= 1.001


def test_what_has_no_weight_stays_and_what_has_falls(play):
    loader = ld.load("loader")
    found = play(loader)
    until(lambda: found.loop is not None and found.loop.calls > 10)
    np.testing.assert_allclose(found.q, loader.home, atol=1e-9)
    found.weightless = False
    until(lambda: np.abs(found.q - loader.home).max() > 0.05)
    assert np.abs(ld.closure_error(loader, found.q)).max() < 1e-10


def test_what_fails_stands_still_and_goes_on(play):
    """A five-bar that is thrown much too fast."""
    found = play(ld.load("five_bar"))
    until(lambda: found.loop is not None)
    found.slowing = -1e9
    found.grab("link2", found.hand[0] if found.hand else [0.0, 1.5, 0.0])
    found.pull([0.5, 1.0, 0.0])
    until(lambda: "stopped at t" in found.message)
    found.slowing, t = 0.5, found.stepper.t
    until(lambda: found.stepper.t > t + 0.1)
    assert found.running and np.isfinite(found.q).all()


def test_a_start_that_cannot_be_says_so():
    found = Play(ld.load("stewart"), np.zeros(ld.load("stewart").nq))
    found.start()
    until(lambda: not found.running)
    assert found.message and found.loop is None


@pytest.fixture
def page():
    pytest.importorskip("viser")
    made = ld.view(CART, port=18070)
    yield made
    made.close()


def test_the_tab_of_a_page(page):
    """Dragging starts it; switches of the page act on what moves; where it stops the page goes on."""
    import asyncio

    eye = types.SimpleNamespace(camera=types.SimpleNamespace(position=(0.9, 0.0, 5.0)))

    def dragged(phase, cursor):
        asyncio.run(page.touch._dragged("basket", types.SimpleNamespace(
            phase=phase, start_position=(0.9, 0.0, 0.0), end_position=cursor, client=eye)))

    def by_hand(box, value):
        box.value = value
        for callback in box._impl.update_cb:
            callback(types.SimpleNamespace(client=1, target=box))

    dragged("start", (0.9, 0.0, 0.0))
    dragged("update", (1.5, 0.5, 0.0))
    until(lambda: page.touch.play.hand is not None and "real-time factor" in page.text.content)
    by_hand(page.switches["stick"], True)
    until(lambda: page.posture.robot.active == ("rear", "wheel", "stick"))
    dragged("end", (1.5, 0.5, 0.0))
    until(lambda: page.touch.play.hand is None)
    page.touch.stop()
    assert not page.touch.running and page.touch.button.label == "Start"
    np.testing.assert_allclose(page.posture.q, page.touch.play.q, atol=1e-9)
    assert page.posture.q[0] > 0.1 and "rank of the rows" in page.text.content


@pytest.mark.skipif("chromium() is None", reason="there is no chromium")
def test_the_mouse_drags_a_body(page):
    """The point of the body that was pressed is where the mouse was released, within 3 pixels."""
    with Browser(760, 480) as browser:
        browser.open(page.url)
        browser.until(lambda: "Touch" in browser.text(), 60)
        client = browser.until(lambda: next(iter(page.server.get_clients().values()), None))
        browser.settled(60)
        held = np.array([0.45, 0.0, 0.0])
        start = on_screen(client, held)
        goal = start + [40.0, -30.0]
        browser.click(*start, kinds=("mousePressed",))
        for s in np.linspace(0.0, 1.0, 12):
            x, y = start + s * (goal - start)
            browser.command("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y, button="left", buttons=1)
            time.sleep(0.05)
        play = browser.until(lambda: page.touch.play, 30)
        browser.until(lambda: play.hand is not None, 60)
        browser.until(lambda: np.linalg.norm(play.hand[0] - play.hand[1]) < 1e-3, 30)
        np.testing.assert_allclose(on_screen(client, play.hand[0]), goal, atol=3.0)
        assert np.abs(play.q - CART.home).max() > 0.05
        browser.click(*goal, kinds=("mouseReleased",))
        browser.until(lambda: play.hand is None)
        assert not browser.errors


def on_screen(client, point):
    """Where the browser's camera sees a point [pixels]."""
    w, x, y, z = client.camera.wxyz
    R = np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                  [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                  [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]])
    seen = (np.asarray(point) - client.camera.position) @ R  # x right, y down, z ahead
    focal = 0.5 * client.camera.image_height / np.tan(0.5 * client.camera.fov)
    return focal * seen[:2] / seen[2] + 0.5 * np.array([client.camera.image_width, client.camera.image_height])
