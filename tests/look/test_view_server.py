"""Who reaches a page, and what they can do there: other sites nothing, browsers what the page's controls do."""
import asyncio
import contextlib
import http.client
import re
import socket
import sys
import time

import numpy as np
import pytest

import liedyn as ld
from liedyn.look.planes import poses_of

viser = pytest.importorskip("viser")
import msgspec  # noqa: E402
import websockets  # noqa: E402

from liedyn.look.viewer import server as of_pages  # noqa: E402

ARM = ld.load("five_bar")
PROTOCOL = f"viser-v{viser.__version__}"
WEBSOCKET = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
             "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol": PROTOCOL}


@pytest.fixture(scope="module")
def page():
    made = ld.view(ARM, port=18300, origins=["https://hub.example", "http://[2001:db8::1]:88"])
    yield made
    made.close()


def answer(page, headers, path="/", websocket=False):
    """Status of what the server answers to exactly these headers."""
    connection = http.client.HTTPConnection("127.0.0.1", page.server.get_port(), timeout=20)
    connection.putrequest("GET", path, skip_host=True, skip_accept_encoding=True)
    for name, value in [*headers, *(WEBSOCKET.items() if websocket else ())]:
        connection.putheader(name, value)
    connection.endheaders()
    with contextlib.closing(connection):
        found = connection.getresponse()
        return found.status, found.headers


def status(page, host, origin=None, path="/", websocket=True):
    port = str(page.server.get_port())
    headers = [("Host", host.replace("PORT", port))] if host is not None else []
    headers += [("Origin", origin.replace("PORT", port))] if origin is not None else []
    return answer(page, headers, path, websocket)[0]


@pytest.mark.parametrize("host, origin", [
    ("127.0.0.1:PORT", "http://127.0.0.1:PORT"), ("localhost:PORT", "http://localhost:PORT"),
    ("LocalHost:PORT", None), ("127.0.0.1:PORT", None), ("127.0.0.1:PORT", "http://localhost:PORT"),
    ("localhost:9000", "http://localhost:9000"), ("[::1]:9000", "http://[::1]:9000"),  # through a tunnel
    ("localhost", "http://localhost"), ("localhost", "https://localhost"),
    ("hub.example", "https://hub.example"), ("127.0.0.1:PORT", "https://hub.example"),  # through a proxy
    ("[2001:db8::1]:88", "http://[2001:db8::1]:88"),
])
def test_the_page_itself_is_answered(page, host, origin):
    assert status(page, host, origin) == 101 and status(page, host, origin, websocket=False) == 200


@pytest.mark.parametrize("host, origin", [
    ("127.0.0.1:PORT", "http://evil.example"), ("127.0.0.1:PORT", "http://evil.example:PORT"),
    ("127.0.0.1:PORT", "null"), ("127.0.0.1:PORT", ""), ("127.0.0.1:PORT", "file://"), ("127.0.0.1:PORT", "*"),
    ("127.0.0.1:PORT", "http://127.0.0.1.evil.example:PORT"), ("127.0.0.1:PORT", "http://localhost.evil.example:PORT"),
    ("127.0.0.1:PORT", "http://evil.example/127.0.0.1:PORT"), ("127.0.0.1:PORT", "http://127.0.0.1:PORT@evil.example"),
    ("127.0.0.1:PORT", "http://127.0.0.1:PORT.evil.example"), ("127.0.0.1:PORT", "http://evil.example#127.0.0.1:PORT"),
    ("127.0.0.1:PORT", "http://127.0.0.1:3000"), ("127.0.0.1:PORT", "http://localhost"),  # other servers of the machine
    ("127.0.0.1:PORT", "chrome-extension://abcdef"), ("127.0.0.1:PORT", "127.0.0.1:PORT"),
    ("127.0.0.1:PORT", "http://hub.example"), ("127.0.0.1:PORT", "https://hub.example:444"),
    ("evil.example:PORT", "http://evil.example:PORT"), ("evil.example:PORT", None),  # whose name leads here
    ("evil.example", "http://127.0.0.1:PORT"), ("localhost.evil.example:PORT", None), ("localhost.:PORT", None),
    ("127.0.0.1@evil.example:PORT", None), ("0.0.0.0:PORT", None), ("127.1:PORT", None), ("192.168.0.1:PORT", None),
    ("", None), (None, None), ("localhost:PORT/x", None), ("localhost:99999999", None),
])
def test_other_sites_are_refused(page, host, origin):
    assert status(page, host, origin) == 403 and status(page, host, origin, websocket=False) == 403


def test_headers_that_are_there_twice_are_refused(page):
    ours = f"127.0.0.1:{page.server.get_port()}"
    for headers in ([("Host", ours), ("Host", "evil.example")], [("Host", ours), ("Origin", f"http://{ours}"),
                                                                 ("Origin", "http://evil.example")]):
        assert answer(page, headers, websocket=True)[0] == 403


@pytest.mark.parametrize("path, expected", [
    ("/?websocket=ws://evil.example", 403), ("/?websocket=ws://localhost.evil.example:PORT/", 403),
    ("/?websocket=ws%3A%2F%2Fevil.example", 403), ("/?playbackPath=https://evil.example/x.viser", 403),
    ("/?websocket=ws://127.0.0.1:PORT/&websocket=ws://evil.example", 403), ("/?websocket=", 403),
    ("/index.html?x=1", 403), ("/?websocket=ws://127.0.0.1:PORT/proxy/8080", 200),
    ("/?websocket=wss://hub.example/user/a/proxy/8080", 200), ("/", 200), ("/..%2f..%2fetc/passwd", 404),
])
def test_a_link_does_not_make_the_page_show_what_others_send(page, path, expected):
    path = path.replace("PORT", str(page.server.get_port()))
    assert status(page, "127.0.0.1:PORT", path=path, websocket=False) == expected


def test_other_sites_cannot_frame_the_page(page):
    code, headers = answer(page, [("Host", "localhost")])
    policy = headers["Content-Security-Policy"]
    assert code == 200 and policy.startswith("frame-ancestors 'self' ") and "https://hub.example" in policy
    assert "*" not in policy.replace(":*", "") and headers["X-Content-Type-Options"] == "nosniff"


# ---- messages


CAMERA = {"type": "ViewerCameraMessage", "wxyz": (1.0, 0.0, 0.0, 0.0), "position": (1.0, 1.0, 1.0), "fov": 1.0,
          "near": 0.1, "far": 100.0, "image_height": 10, "image_width": 10, "look_at": (0.0, 0.0, 0.0),
          "up_direction": (0.0, 0.0, 1.0)}


def send(page, *messages, done=lambda: False, wait=0.6):
    """Send messages from the page's own address, until something is so, or for a while."""
    async def go():
        url = page.url.replace("http", "ws")
        async with websockets.connect(url, origin=page.url, subprotocols=[PROTOCOL], max_size=None) as connection:
            async def drain():
                with contextlib.suppress(websockets.ConnectionClosed):
                    async for _ in connection:
                        pass
            reader = asyncio.create_task(drain())
            for each in (CAMERA, *messages):
                await connection.send(each if isinstance(each, str | bytes) else msgspec.msgpack.encode(each))
            until = time.monotonic() + (20.0 if done() is False and wait is None else wait or 20.0)
            while time.monotonic() < until and not done():
                await asyncio.sleep(0.02)
            reader.cancel()
            return connection.state.name == "OPEN"
    return asyncio.run(go())


def update(control, **updates):
    return {"type": "GuiUpdateMessage", "uuid": control._impl.uuid, "updates": updates}


def test_controls_do_what_they_do(page):
    slider, box = page.sliders["q1"], page.switches["pin"]
    goal = round(slider.value + 0.05, 3)
    assert send(page, update(slider, value=goal), done=lambda: abs(page.posture.value("q1") - goal) < 1e-9, wait=20.0)
    assert page.posture.value("q1") == pytest.approx(goal, abs=1e-9)
    for on in (False, True):
        send(page, update(box, value=on), done=lambda on=on: ("pin" in page.posture.robot.active) == on, wait=20.0)
        assert ("pin" in page.posture.robot.active) == on


def test_nothing_else_gets_in(page, monkeypatch):
    called = []
    for name in ("request_share_url", "disconnect_share_url"):
        monkeypatch.setattr(page.server, name, lambda name=name: called.append(name))
    slider, box, before = page.sliders["q2"], page.switches["pin"], page.posture.q.copy()
    kept = [(each, {name: x for name, x in vars(each._impl).items() if name != "value"}, each.value)
            for each in (slider, box, page.touch.frequency, page.touch.button)]
    wrong = [update(slider, value=x) for x in (np.nan, np.inf, -np.inf, 1e308, -1e308, 1e9, "3", "x", None, True, [0.1],
                                               {"a": 1}, slider.max + 0.1)]
    wrong += [update(slider, **{name: []}) for name in ("update_cb", "removed", "props", "gui_api", "sync_cb", "uuid")]
    wrong += [update(slider, value=slider.value + 0.01, update_cb=[]), update(box, value=1), update(box, value="on"),
              update(box, is_button=True), update(page.touch.frequency, value=np.nan),
              update(page.touch.button, update_cb=[]), {**update(slider, value=0.1), "uuid": "none"},
              {**update(slider, value=0.1), "excluded_self_client": 0}, update(slider)]
    wrong += [{"type": kind} for kind in ("ShareUrlRequest", "ShareUrlDisconnect", "GuiRemoveMessage", "Message", "")]
    wrong += [{"type": "FileTransferStartUpload", "source_component_uuid": slider._impl.uuid, "transfer_uuid": "t",
               "filename": "../x", "mime_type": "x", "part_count": 10**9, "size_bytes": 10**12},
              CAMERA | {"fov": np.nan}, CAMERA | {"position": (np.inf, 0.0, 0.0)}, [], 3, None, "text", b"", b"\xc1",
              b"\x91" * 100_000, {"type": ["x"]}, {"uuid": 1}]
    assert send(page, *wrong), "the connection lives"
    assert called == [] and not page.server.gui._current_file_upload_states
    for each, rest, value in kept:
        assert each.value == value and {name: getattr(each._impl, name) for name in rest} == rest
    np.testing.assert_array_equal(page.posture.q, before)
    assert all(client.camera.fov == 1.0 for client in page.server.get_clients().values())


def test_a_dropdown_has_its_options_only():
    ss = ld.linearize(ARM, ARM.home, [0.0] * 4, [0.0] * 4)
    page = ld.view(ARM, linear=ss, trajectory=ld.simulate(ARM, ARM.home, [0.0] * 4, 0.02), port=18310)
    try:
        options = page.mode.options
        send(page, update(page.mode, value="none of them"), update(page.mode, value=options[-1]),
             done=lambda: page.mode.value == options[-1], wait=20.0)
        assert page.mode.value == options[-1]
    finally:
        page.close()


def test_too_large_a_message_ends_its_connection_only(page):
    assert not send(page, b"\x00" * (of_pages.LARGEST + 1), wait=2.0)
    assert status(page, "127.0.0.1:PORT") == 101


def test_places_beyond_sight_are_not_dragged(page):
    import types
    for place in ((1e9, 0.0, 0.0), (np.nan, 0.0, 0.0)):
        for phase in ("start", "update", "end"):
            event = types.SimpleNamespace(phase=phase, start_position=place, end_position=(0.0, 0.0, 0.0))
            asyncio.run(page.touch._dragged("link1", event))
        assert page.touch.play is None


# ---- addresses


@pytest.mark.parametrize("host", ["192.0.2.7", "no.such.host.invalid", "", "a b", "127.0.0.1:80", "x" * 300, "\0",
                                  "é" * 99, "http://127.0.0.1", "2001:db8::7"])
def test_hosts_that_are_none_are_errors_at_once(host):
    began = time.monotonic()
    with pytest.raises(ld.InputError, match=f"host .*{re.escape(ascii(host))[:9]}" if host.isascii() else "host"):
        ld.view(ARM, host=host, port=18320)
    assert time.monotonic() - began < 20.0


def test_the_next_free_port_or_an_error():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        if port < 65000:
            page = ld.view(ARM, port=port)
            assert port < page.server.get_port() < port + 100 and page.url == f"http://127.0.0.1:{page.server.get_port()}"
            page.close()
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # another program may have it
            stack.enter_context(socket.create_server(("127.0.0.1", 65535)))
        with pytest.raises(ld.InputError, match="no port from 65535 to 65535 is free"):
            ld.view(ARM, port=65535)


@pytest.mark.parametrize("origins", ["https://hub.example", ["hub.example"], ["https://hub.example/path"], ["*"], [3],
                                     3, ["https://a@b"], ["ftp://hub.example"], ["https://hub.example:x"]])
def test_origins_are_addresses(origins):
    with pytest.raises(ld.InputError, match="origins"):
        ld.view(ARM, origins=origins)


def test_all_of_the_network():
    """By number and by the machine's name, at the very port; by no other name."""
    page = ld.view(ARM, host="0.0.0.0", port=18330)
    try:
        assert page.url == f"http://localhost:{page.server.get_port()}"
        for host in ("192.168.7.7:PORT", f"{socket.gethostname()}:PORT", "[fd00::1]:PORT", "localhost:7"):
            assert status(page, host, f"http://{host}") == 101
        for host in ("evil.example:PORT", "192.168.7.7:7", "192.168.7.7", "1.2.3.4.evil.example:PORT"):
            assert status(page, host, f"http://{host}") == 403
        assert status(page, "192.168.7.7:PORT", "http://192.168.7.8:PORT") == 403
    finally:
        page.close()


@pytest.mark.parametrize("host, url", [
    ("127.0.0.1", "http://127.0.0.1:8080"), ("0.0.0.0", "http://localhost:8080"), ("::", "http://localhost:8080"),
    ("::1", "http://[::1]:8080"), ("[::1]", "http://[::1]:8080"), ("box.local", "http://box.local:8080"),
])
def test_what_the_browser_opens(host, url):
    import types
    assert of_pages.url_of(types.SimpleNamespace(get_host=lambda: host, get_port=lambda: 8080)) == url


def test_servers_of_others_are_as_they_were(page):
    other = viser.ViserServer(host="127.0.0.1", port=18340, verbose=False)
    try:
        assert answer(types_of(other), [("Host", "any.example")])[0] == 200
        assert "viewer" not in sys.modules["websockets.asyncio.server"].serve.__module__
    finally:
        other.stop()


def types_of(server):
    import types
    return types.SimpleNamespace(server=server)


def test_a_viser_that_is_not_known_is_refused(monkeypatch):
    from viser.infra import _infra

    class Other:
        """As if it took its server from elsewhere."""

        class asyncio:
            class server:
                serve = websockets.asyncio.server.serve
                ServerConnection = websockets.asyncio.server.ServerConnection

        datastructures, exceptions = websockets.datastructures, websockets.exceptions

    monkeypatch.setattr(_infra, "websockets", Other)
    with pytest.raises(ld.LiedynError, match="serves pages in a way that liedyn does not know"):
        ld.view(ARM, port=18350)


# ---- names


def test_names_on_a_page_are_text_and_bodies_are_where_they_are():
    evil = "<img src=x onerror=alert(1)> {1+1} [a](javascript:b) `c` | *d*"
    b = ld.Builder(evil)
    for k, (name, parent) in enumerate([("a", "ground"), ("a/b", "a"), ("../c", "a/b"), ("", "../c")]):
        b.body(name or evil, mass=1.0, inertia=(0.1, 0.1, 0.1))
        b.joint(f"j{k}{evil}", "revolute", parent, name or evil, (1.0, 0.1, 0.0), axis=(0, 0, 1), limits=(0.5, 1.0))
    b.loop(evil, "spherical", "ground", evil, (2.0, 1.0, 0.0), (0.5, 0.0, 0.0))
    robot = b.build()
    page = ld.view(robot, port=18360)
    try:
        for text in (page.text.content, *(each.content for each in page.server.gui._gui_input_handle_from_uuid.values()
                                          if hasattr(each, "content"))):
            assert "beyond limits" in text and not set("<>{}[]`|") & set(re.sub(r"&#\d+;", "", text))
        expected = poses_of(robot, page.posture.q)
        for name, node in page.stage.bodies.items():
            np.testing.assert_allclose(node.position, expected[name][:3, 3], atol=1e-9)
            assert node.name.count("/") == 2
    finally:
        page.close()
