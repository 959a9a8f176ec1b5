"""The way to a Cloud Storage of the tests for who knows public hosts only: gs_proxy.py STORE_PORT PEM [HOST].

TensorFlow's gs:// file system cannot be told another address, but goes through a proxy. This one ends TLS for
*.googleapis.com with a certificate of the test's own and hands the requests to the store; it reaches nothing
else. It also answers POST /token, as the token server of a throwaway account. Prints its port.
"""

import asyncio
import contextlib
import json
import ssl
import sys

TOKEN = json.dumps({"access_token": "x", "expires_in": 3600, "token_type": "Bearer"}).encode()


async def pipe(reader, writer):
    with contextlib.suppress(OSError, ssl.SSLError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    with contextlib.suppress(OSError, ssl.SSLError):
        writer.close()


async def answer(reader, writer, *, store, context):
    with contextlib.suppress(OSError, ssl.SSLError, asyncio.IncompleteReadError):
        head = await reader.readuntil(b"\r\n\r\n")
        method, target, _ = head.partition(b"\r\n")[0].split()
        host = target.rpartition(b":")[0] if method == b"CONNECT" else b"".join(target.split(b"/")[2:3])
        if method == b"POST" and target == b"/token":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(TOKEN), TOKEN))
        elif not host.endswith(b".googleapis.com"):
            writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
        else:
            from_store, to_store = await asyncio.open_connection(*store)
            if method == b"CONNECT":
                writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
                await writer.drain()
                await writer.start_tls(context)
            else:  # where the store says that an upload goes on, it says http://
                to_store.write(head.replace(b"http://" + host, b"", 1))
            await asyncio.gather(pipe(reader, to_store), pipe(from_store, writer))
        await writer.drain()
    writer.close()


async def main(store, pem, host="127.0.0.1"):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    context.set_alpn_protocols(["http/1.1"])
    server = await asyncio.start_server(
        lambda reader, writer: answer(reader, writer, store=(host, int(store)), context=context), host, 0
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
