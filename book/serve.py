"""A web server as sites have: text is sent compressed. For measuring and testing; readers need no more than `python3 -m http.server`."""

import functools
import gzip
import http.server
import threading
from contextlib import contextmanager
from pathlib import Path

COMPRESSED = {".html", ".css", ".js", ".json", ".svg", ".txt", ".xml", ".ipynb"}


@functools.lru_cache(None)
def compressed(path, changed):
    return gzip.compress(Path(path).read_bytes(), 6)


class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # connections stay open, as everywhere

    def log_message(self, *arguments):
        pass

    def send_head(self):
        path = Path(self.translate_path(self.path))
        if path.suffix not in COMPRESSED or not path.is_file() or "gzip" not in self.headers.get("Accept-Encoding", ""):
            return super().send_head()
        body = compressed(str(path), path.stat().st_mtime_ns)
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(str(path)))
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "max-age=600")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)


@contextmanager
def serve(folder):
    """The address of a site that is served as long as the block lasts."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=folder))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
