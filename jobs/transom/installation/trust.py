"""Java's options for this machine's network: its certificates and its proxy.

Python and pip use those of the machine. Java has its own list of certificates, in particular one from a
package, and ignores proxy variables. So it would reach nothing through a proxy.
"""

import hashlib
import ssl
import struct
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

# A trust store has no secrets, but its format requires a password.
PASSWORD = "changeit"


def certificates() -> list[bytes]:
    """Return the authorities that Python trusts on this machine, each in DER."""
    context = ssl.create_default_context()
    folder = ssl.get_default_verify_paths().capath
    # OpenSSL reads a folder of certificates only when it needs one, so the context does not list them.
    for file in {entry.resolve() for entry in Path(folder).iterdir()} if folder else ():
        try:
            context.load_verify_locations(cafile=file)
        except (ssl.SSLError, OSError):
            continue
    return sorted(set(context.get_ca_certs(binary_form=True)))


def store(authorities: list[bytes]) -> bytes:
    """Return a Java key store (JKS, version 2) of trusted certificates."""
    data = struct.pack(">III", 0xFEEDFEED, 2, len(authorities))
    for number, authority in enumerate(authorities):
        data += struct.pack(">I", 2) + _text(f"authority-{number}") + struct.pack(">Q", 0)
        data += _text("X.509") + struct.pack(">I", len(authority)) + authority
    # The format fixes the digest and its salt.
    return data + hashlib.sha1(PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite" + data).digest()


def _text(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()


def proxy_options(proxies: dict[str, str]) -> list[str]:
    """Return Java's options for proxies.

    Args:
        proxies: as `urllib.request.getproxies()` returns them.
    """
    options = []
    for scheme in ("http", "https"):
        proxy = urlsplit(proxies.get(scheme, ""))
        if proxy.hostname:
            options += [f"-D{scheme}.proxyHost={proxy.hostname}", f"-D{scheme}.proxyPort={proxy.port or 80}"]
    direct = [host.strip() for host in proxies.get("no", "").split(",") if host.strip()]
    if options and direct:
        hosts = "|".join(f"*{host}" if host.startswith(".") else host for host in direct)
        options.append(f"-Dhttp.nonProxyHosts={hosts}")
    return options


def options(file: Path) -> list[str]:
    """Return Java's options for this machine's network, and write the trust store to `file`."""
    authorities = certificates()
    given = proxy_options(urllib.request.getproxies())
    if authorities:
        file.write_bytes(store(authorities))
        given += [
            f"-Djavax.net.ssl.trustStore={file}",
            "-Djavax.net.ssl.trustStoreType=JKS",
            f"-Djavax.net.ssl.trustStorePassword={PASSWORD}",
        ]
    return given
