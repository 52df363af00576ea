#!/usr/bin/env python3
"""A Hugging Face hub of one's own, on this machine alone: the part of its API that downloads need, a second
server that plays the CDN, and whatever may go wrong on the way.

    with FakeHub({"owner/name": Repository({"config.json": b"{}"})}) as hub:
        hub.fault("cdn", "model.safetensors", Cut(1000), times=2)
        run(env={"HF_ENDPOINT": hub.endpoint})
        hub.requests            # what was asked: server, method, path, headers

Understands what trtmc and huggingface_hub ask: /api/models/ID/revision/REV, /api/models/ID/tree/COMMIT,
/ID/resolve/REV/NAME. Large files are redirected to the CDN, as the hub does for git LFS.
"""
import dataclasses
import hashlib
import http.server
import json
import re
import socket
import struct
import threading
import time
import urllib.parse

# Two addresses, since huggingface_hub takes every port of a host for the same server.
HOSTS = {"hub": "127.0.0.1", "cdn": "127.0.0.2"}
LFS_BYTES = 4096  # From here on a file is kept by LFS; .safetensors always are.


def git_blob_id(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class Repository:
    """Files at one or more revisions. `token`: what a client must send to see it."""

    def __init__(self, files, token=None, gated=False):
        self.revisions = {}
        self.token = token
        self.gated = gated
        self.commit_files = {}
        self.listed = {}  # By commit: hashes take time.
        self.commit("main", files)

    def commit(self, revision, files):
        text = "".join(f"{name} {git_blob_id(data)}\n" for name, data in sorted(files.items()))
        commit = hashlib.sha1(text.encode()).hexdigest()
        self.commit_files[commit] = dict(files)
        self.revisions[revision] = commit
        return commit

    def find(self, revision):
        return self.revisions.get(revision, revision if revision in self.commit_files else None)

    def siblings(self, commit):
        """As /api/models/ID/revision/REV?blobs=true lists them."""
        return [{"rfilename": name, "size": size, "blobId": blob} | ({"lfs": lfs | {"sha256": sha256}} if lfs else {})
                for name, size, blob, sha256, lfs in self.entries(commit)]

    def tree(self, commit):
        """As /api/models/ID/tree/COMMIT does."""
        return [{"type": "file", "path": name, "size": size, "oid": blob} | ({"lfs": lfs | {"oid": sha256}} if lfs else {})
                for name, size, blob, sha256, lfs in self.entries(commit)]

    def entries(self, commit):
        if commit not in self.listed:
            self.listed[commit] = [
                (name, len(data), git_blob_id(data), sha256(data),
                 {"size": len(data), "pointerSize": 134} if is_lfs(name, data) else None)
                for name, data in sorted(self.commit_files[commit].items())]
        return self.listed[commit]


def is_lfs(name, data):
    return name.endswith(".safetensors") or len(data) >= LFS_BYTES


# What a fault does in place of the honest answer. Each gets the handler and the honest body's part.

@dataclasses.dataclass
class Status:
    """Another status, with headers."""
    status: int
    headers: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Cut:
    """The connection is reset after `after` bytes of the body."""
    after: int


@dataclasses.dataclass
class Lie:
    """Another body, under whatever headers: None leaves a header out."""
    body: bytes
    headers: dict = dataclasses.field(default_factory=dict)
    status: int = 200


@dataclasses.dataclass
class Drip:
    """A byte a `pause`, for ever."""
    pause: float = 0.05


@dataclasses.dataclass
class Slow:
    """The honest body, at so many bytes a second."""
    rate: int


@dataclasses.dataclass
class Endless:
    """A body without an end."""


@dataclasses.dataclass
class IgnoreRange:
    """The whole file, whatever part was asked for."""


@dataclasses.dataclass
class Redirect:
    """To an address; "{cdn}" and "{hub}" stand for the two servers."""
    location: str


@dataclasses.dataclass
class _Fault:
    server: str
    match: str
    action: object
    times: int


@dataclasses.dataclass
class Request:
    server: str
    method: str
    path: str
    headers: dict

    @property
    def token(self):
        return self.headers.get("authorization", "").removeprefix("Bearer ")


class FakeHub:
    def __init__(self, repositories):
        self.repositories = repositories
        self.requests = []
        self.lock = threading.Lock()
        self.faults = []
        self.servers = {name: _start(self, name) for name in HOSTS}
        self.endpoint = self.address("hub")

    def address(self, server):
        return f"http://{HOSTS[server]}:{self.servers[server].server_port}"

    def fault(self, server, match, action, times=1):
        """The next `times` GETs of a path with `match` in it get `action`."""
        with self.lock:
            self.faults.append(_Fault(server, match, action, times))

    def take_fault(self, server, path):
        with self.lock:
            for fault in self.faults:
                if fault.server == server and fault.times > 0 and fault.match in path:
                    fault.times -= 1
                    return fault.action
        return None

    def asked(self, server, match=""):
        with self.lock:
            return [r for r in self.requests if r.server == server and r.method == "GET" and match in r.path]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for server in self.servers.values():
            server.shutdown()
            server.server_close()


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def handle_error(self, request, client_address):
        pass  # Clients that hang up are what is being tested.


def _start(hub, name):
    server = _Server((HOSTS[name], 0), _Handler)
    server.hub, server.name = hub, name
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    return server


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):  # noqa: N802 (the library's name)
        self.answer(with_body=False)

    def do_GET(self):  # noqa: N802
        self.answer(with_body=True)

    def answer(self, with_body):
        hub = self.server.hub
        role = self.server.name
        if proxied := re.match(r"http://[^/]+", self.path):  # As a proxy is asked.
            role = "cdn" if proxied[0] == hub.address("cdn") else "hub"
            self.path = self.path[proxied.end():]
        headers = {name.lower(): value for name, value in self.headers.items()}
        with hub.lock:
            hub.requests.append(Request(role, self.command, self.path, headers))
        fault = hub.take_fault(role, self.path) if with_body else None
        if isinstance(fault, Status):
            return self.send(fault.status, fault.headers, b"", with_body)
        if isinstance(fault, Redirect):
            location = fault.location.format(cdn=hub.address("cdn"), hub=hub.address("hub"))
            return self.send(302, {"Location": location}, b"", with_body)
        if isinstance(fault, Lie):
            return self.lie(fault)
        if isinstance(fault, (Drip, Endless)):
            return self.drip(fault)
        if role == "cdn":
            return self.answer_cdn(with_body, fault)
        return self.answer_hub(with_body, fault)

    def answer_hub(self, with_body, fault):
        path = urllib.parse.urlsplit(self.path)
        found = (re.fullmatch(r"/api/models/(?P<id>[^/]+/[^/]+)(?:/(?P<kind>revision|tree)/(?P<rev>[^/]+))?/?", path.path)
                 or re.fullmatch(r"/(?P<id>[^/]+/[^/]+)/(?P<kind>resolve)/(?P<rev>[^/]+)/(?P<name>.+)", path.path))
        repository = found and self.server.hub.repositories.get(found["id"])
        if not repository or (repository.token and self.token() != repository.token):
            if repository and repository.gated and self.token():
                return self.send(403, {"X-Error-Code": "GatedRepo"}, b"", with_body)
            return self.send(401, {"X-Error-Code": "RepoNotFound"}, b"", with_body)
        commit = repository.find(urllib.parse.unquote(found["rev"] or "main"))
        if commit is None:
            return self.send(404, {"X-Error-Code": "RevisionNotFound"}, b"", with_body)
        if found["kind"] == "resolve":
            name = urllib.parse.unquote(found["name"])
            return self.answer_file(repository.commit_files[commit].get(name), name, commit, with_body, fault)
        if found["kind"] == "tree":
            answer = repository.tree(commit)
        else:
            answer = {"_id": "0", "id": found["id"], "modelId": found["id"], "sha": commit, "private": False,
                      "tags": [], "downloads": 0, "siblings": repository.siblings(commit)}
            if "blobs=true" not in path.query:
                answer["siblings"] = [{"rfilename": s["rfilename"]} for s in answer["siblings"]]
        return self.send(200, {"Content-Type": "application/json"}, json.dumps(answer).encode(), with_body, fault)

    def answer_file(self, data, name, commit, with_body, fault):
        if data is None:
            return self.send(404, {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": commit}, b"", with_body)
        headers = {"X-Repo-Commit": commit}
        if not is_lfs(name, data):
            return self.send(200, headers | {"ETag": f'"{git_blob_id(data)}"'}, data, with_body, fault)
        digest = sha256(data)
        headers |= {"X-Linked-Etag": f'"{digest}"', "X-Linked-Size": str(len(data)),
                    "Location": f"{self.server.hub.address('cdn')}/{digest}/{name}?signature=1"}
        return self.send(302, headers, b"", with_body, fault)

    def answer_cdn(self, with_body, fault):
        digest = self.path.split("/")[1]
        for repository in self.server.hub.repositories.values():
            for files in repository.commit_files.values():
                for data in files.values():
                    if sha256(data) == digest:
                        return self.send(200, {"ETag": f'"{digest}"'}, data, with_body, fault)
        return self.send(404, {}, b"", with_body)

    def token(self):
        return self.headers.get("Authorization", "").removeprefix("Bearer ")

    def send(self, status, headers, body, with_body, fault=None):
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if wanted and status == 200 and not isinstance(fault, IgnoreRange):
            first = int(wanted[1])
            last = min(int(wanted[2] or len(body) - 1), len(body) - 1)
            if first > last:
                return self.send(416, {}, b"", with_body)
            headers = headers | {"Content-Range": f"bytes {first}-{last}/{len(body)}"}
            status, body = 206, body[first:last + 1]
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(body)), "Accept-Ranges": "bytes"} | headers).items():
            self.send_header(name, value)
        self.end_headers()
        if not with_body:
            return None
        if isinstance(fault, Cut):
            self.wfile.write(body[:fault.after])
            return self.cut()
        if isinstance(fault, Slow):
            step = max(fault.rate // 20, 1)
            for start in range(0, len(body), step):
                self.wfile.write(body[start:start + step])
                time.sleep(step / fault.rate)
            return None
        self.wfile.write(body)
        return None

    def lie(self, fault):
        self.send_response(fault.status)
        for name, value in ({"Content-Length": str(len(fault.body))} | fault.headers).items():
            if value is not None:
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(fault.body)
        self.close_connection = True

    def drip(self, fault):
        self.send_response(200)
        self.send_header("Content-Length", str(1 << 40))
        self.end_headers()
        while True:
            self.wfile.write(b" " if isinstance(fault, Drip) else b" " * 65536)
            if isinstance(fault, Drip):
                time.sleep(fault.pause)

    def cut(self):
        """Not an end but a reset."""
        self.wfile.flush()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()


_DIGESTS = {}


def sha256(data):
    """Of immutable bytes, so that each is hashed once."""
    if id(data) not in _DIGESTS:
        _DIGESTS[id(data)] = (data, hashlib.sha256(data).hexdigest())
    return _DIGESTS[id(data)][1]
