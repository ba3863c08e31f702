"""The server of a page: where it listens, which requests it answers, which messages it accepts.

Every page that is open in a browser can connect to any port of this machine. Two headers that no script can change
identify the page of a robot: Host, the address that the browser used, and Origin, the page that makes the request.
Without checking them any site could move the robot (from its own origin), or read the page (from a domain name of its
own that resolves to this machine: DNS rebinding). viser checks neither, so they are checked here, before viser handles
the request; and of all messages from a browser, viser gets only those that the controls of a page can send.
"""
import contextlib
import errno
import functools
import http
import importlib
import io
import math
import os
import re
import socket
import threading
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from liedyn.look.solid_surfaces import required
from liedyn.machine.errors import InputError, LiedynError, shown
from liedyn.machine.typed_decorators import once

TRIES = 1000
"""Number of ports that are tried from the given one on."""
LARGEST = 2**20
"""Largest size of a message from a browser [bytes]."""
HERE = ("localhost", "127.0.0.1", "::1")
"""Names of this machine for itself: at the other end of a tunnel, with any port, they are names of this page too."""
EVERYWHERE = ("0.0.0.0", "::")
_AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?::(\d{1,5}))?", re.IGNORECASE)
_DEFAULT_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}
_STARTING = threading.Lock()


class Door:
    """Checks requests and messages before they reach viser.

    Parameters
    ----------
    host : str
        The argument of `view`.
    listener : socket
        The socket at which the page is served.
    origins : sequence of tuple
        Further addresses of the page, as returned by `address`.
    """

    def __init__(self, host, listener, origins):
        self.host, self.listener, self.origins = _Host(host), listener, origins
        self.is_there, self.gui = False, None
        bound, self.port = listener.getsockname()[:2]
        self.everywhere = bound in EVERYWHERE
        self._names = {_plain(host), bound.lower()} - set(EVERYWHERE)
        if self.everywhere:
            name = socket.gethostname().lower()
            self._names |= {name, f"{name.partition('.')[0]}.local"}

    # ---- requests

    def refusal(self, request):
        """The reason for refusing a request; None if it is answered."""
        hosts, origins = (request.headers.get_all(each) for each in ("Host", "Origin"))
        host = _authority(hosts[0]) if len(hosts) == 1 else None
        if host is None or not self._is_ours(host):
            return (f"Host {shown(', '.join(hosts))} is no address of this page, which answers at this machine's own "
                    "and at those given as view(..., origins=)")
        for each in origins:
            origin = _origin(each)
            if len(origins) > 1 or origin is None or not self._may_ask(origin, host):
                return f"Origin {shown(', '.join(origins))} is another site, which may not use this page"
        for name, value in parse_qsl(request.path.partition("?")[2], keep_blank_values=True):
            server = _origin(value)  # a browser behind a proxy writes the proxy's address here
            if name != "websocket" or server is None or not self._may_ask(server, host):
                return f"{shown(name)} in the address would have the page take what it shows from elsewhere"
        return None

    def _is_ours(self, host):
        name, port = host
        if name in HERE or any(_same(host, each[1:]) for each in self.origins):
            return True
        by_number = self.everywhere and _is_number(name)  # a name could be made to resolve to this machine
        return (name in self._names or by_number) and (80 if port is None else port) == self.port

    def _may_ask(self, origin, host):
        """True for the page itself, at whatever address it was found, and for the addresses that the user has named."""
        scheme, *authority = origin
        known = [each[1:] for each in self.origins if each[0] == scheme.replace("ws", "http")]
        return _same(authority, host, scheme) or any(_same(authority, each, scheme) for each in known)

    # ---- messages

    def takes(self, data):
        """True for messages that the controls of a page send."""
        try:
            message = importlib.import_module("msgspec").msgpack.decode(data) if isinstance(data, bytes) else None
            kind = message.pop("type")
            if kind == "GuiUpdateMessage":
                control = self.gui._gui_input_handle_from_uuid.get(message["uuid"])
                updates = message["updates"]
                return message.keys() == {"uuid", "updates"} and updates.keys() == {"value"} and (
                    control is not None and _fits(control, updates["value"]))
            return kind in ("ViewerCameraMessage", "SceneNodeDragMessage") and all(map(_is_finite, _leaves(message)))
        except Exception:  # for anything that is no message, or an incomplete one
            return False

    # ---- insertion into viser

    def serve(self, original, handler, host, port, **options):
        """The replacement of viser's call of websockets, with this door; for other servers the original."""
        if host is not self.host:
            return original(handler, host, port, **options)
        self.is_there, answer = True, options.pop("process_request", None)
        return original(handler, sock=self.listener, **options | {
            "process_request": functools.partial(self._answer, answer), "max_size": LARGEST,
            "create_connection": functools.partial(_connection(), self)})

    async def _answer(self, answer, connection, request):
        refusal = self.refusal(request)
        if refusal is not None:
            return connection.respond(http.HTTPStatus.FORBIDDEN, refusal + "\n")
        response = answer(connection, request) if answer is not None else None
        response = await response if hasattr(response, "__await__") else response
        if response is not None:
            frames = ["'self'", *(f"{scheme}://{name}:*" for scheme in ("http", "https") for name in HERE[:2]),
                      *(f"{scheme}://{_written(name, port)}" for scheme, name, port in self.origins)]
            response.headers["Content-Security-Policy"] = f"frame-ancestors {' '.join(frames)}"
            response.headers["X-Content-Type-Options"] = "nosniff"
        return response


class _Host(str):
    """The address of one door: the object's identity tells which server asks for it."""


@once
def _connection():
    """The class of connections whose messages are checked by a door."""
    from websockets.asyncio.server import ServerConnection

    if not TYPE_CHECKING:  # they would take it for one of the module
        class Connection(ServerConnection):
            def __init__(self, door, *given, **more):
                super().__init__(*given, **more)
                self._door = door

            async def recv(self, *given, **more):
                while True:
                    data = await super().recv(*given, **more)
                    if self._door.takes(data):
                        return data

    return Connection


# ---- addresses


def address(text):
    """Scheme, name and port of the address of a page, ``https://hub.example:8000``; InputError if it is none."""
    found = _origin(text) if isinstance(text, str) else None
    if found is None or found[0] not in ("http", "https"):
        raise InputError(f"origins are addresses like 'https://hub.example:8000', without a path, got {shown(text)}")
    return found


def _origin(text):
    """Scheme, name and port; None for invalid addresses. The path of a websocket address is ignored."""
    scheme, mark, rest = text.partition("://")
    authority = _authority(rest.partition("/")[0] if scheme in ("ws", "wss") else rest)
    return (scheme, *authority) if mark and scheme in _DEFAULT_PORTS and authority else None


def _authority(text):
    """Name and port, which is None if there is none; None if the text is invalid."""
    found = _AUTHORITY.fullmatch(text)
    return found and (_plain(found[1]), found[2] and int(found[2]))


def _plain(name):
    return name.lower().removeprefix("[").removesuffix("]")


def _written(name, port):
    return (f"[{name}]" if ":" in name else name) + (f":{port}" if port is not None else "")


def _same(one, other, scheme=None):
    """True if two authorities are the same place. All names of this machine for itself agree; ports may be implied."""
    default = [_DEFAULT_PORTS[scheme]] if scheme else [80, 443]
    (name, port), (name_2, port_2) = one, other
    ports_agree = port == port_2 or None in (port, port_2) and {port, port_2} - {None} <= set(default)
    return ports_agree and (name == name_2 or name in HERE and name_2 in HERE)


def _is_number(name):
    for family in (socket.AF_INET, socket.AF_INET6):
        with contextlib.suppress(OSError, ValueError):
            socket.inet_pton(family, name)
            return True
    return False


# ---- messages


def _leaves(x):
    if isinstance(x, dict | list | tuple):
        for each in x.values() if isinstance(x, dict) else x:
            yield from _leaves(each)
    else:
        yield x


def _is_finite(x):
    return not isinstance(x, float) or math.isfinite(x)


def _fits(control, value):
    """True for a value that the browser's control could have."""
    now = control.value
    if isinstance(now, bool):
        return isinstance(value, bool)
    if isinstance(now, str):
        return value in control.options
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and _is_finite(value)
    # browsers round to the digits shown
    return is_number and control.min - control.step <= value <= control.max + control.step


# ---- the server


def open_server(host, port, origins=()):
    """A viser server behind a `Door`, without output on the terminal.

    Raises InputError if the address does not belong to this machine, or no port is free. Raises LiedynError if viser or
    trimesh is not installed, or this version of viser cannot be used with a door.
    """
    viser = required("viser")
    required("trimesh")
    with contextlib.ExitStack() as undo:
        door = Door(host, undo.enter_context(_listener(host, port)), [address(each) for each in origins])
        with _STARTING, _serving_through(door), contextlib.redirect_stdout(io.StringIO()):
            server = viser.ViserServer(host=door.host, port=door.port, verbose=False)
        door.gui = server.gui
        if not (door.is_there and hasattr(door.gui, "_gui_input_handle_from_uuid")):
            close_server(server)
            raise LiedynError(f"viser {viser.__version__} serves pages in a way that liedyn does not know, open to all "
                              "sites: take an older one, pip install 'viser<=1.1.1'")
        undo.pop_all()  # viser closes the socket
    return server


def close_server(server):
    """Stops the server, without output on the terminal."""
    with contextlib.redirect_stdout(io.StringIO()):
        server.stop()


def url_of(server):
    """The address for the browser."""
    host = server.get_host()
    name = "localhost" if host in EVERYWHERE else _plain(host)
    return f"http://{_written(name, server.get_port())}"


@contextlib.contextmanager
def _serving_through(door):
    """While viser starts, its websockets module is replaced by the door, as viser has no argument for that."""
    module = importlib.import_module("websockets.asyncio.server")
    original = module.serve

    def serve(handler, host=None, port=None, **options):
        return door.serve(original, handler, host, port, **options)

    module.serve = serve
    try:
        yield
    finally:
        module.serve = original


def _listener(host, port):
    """A socket that listens at an address of this machine: at the given port, or the next free one."""
    if not host:
        raise InputError(f"host must be an address of this machine, got {shown(host)}")
    try:
        found = socket.getaddrinfo(_plain(host), port, type=socket.SOCK_STREAM)
    except (OSError, ValueError) as error:  # ValueError: invalid name
        raise InputError(f"host {shown(host)} is no address: {getattr(error, 'strerror', None) or error}") from None
    family, *_, (number, *_) = min(found, key=lambda each: each[0] != socket.AF_INET)
    last = min(port + TRIES - 1, 65535) if port else 0
    for tried in range(port, last + 1):
        listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            if os.name == "posix":  # elsewhere this option would take ports that are in use
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((number, tried))
            listener.listen(100)
            return listener
        except OSError as error:
            listener.close()
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise InputError(f"host {shown(host)}: nothing can be served there, is it an address of this machine? "
                                 f"({error.strerror or error})") from None
        except BaseException:
            listener.close()
            raise
    raise InputError(f"host {shown(host)}: no port from {port} to {last} is free")
