"""What stands between a client and a server over HTTP and fails: bad_proxy.py SERVER-PORT cut|mute

It listens at a port that was free, and prints it. `cut`: it passes on what the client sends, and of a response that has more to
say than the head it cuts the connection off in its midst, once the file that CUT names is there. `mute`: it takes connections and
says nothing, ever.
"""
import os
import socket
import sys
import threading


def pump(source: socket.socket, sink: socket.socket, cuts: bool) -> None:
    try:
        while data := source.recv(1 << 16):
            if cuts and os.path.exists(os.environ["CUT"]):
                sink.sendall(data[: len(data) // 2])
                break
            sink.sendall(data)
    except OSError:
        pass
    for end in (source, sink):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def serve(client: socket.socket, port: int) -> None:
    server = socket.create_connection(("127.0.0.1", port))
    threading.Thread(target=pump, args=(client, server, False), daemon=True).start()
    pump(server, client, True)


to, how = int(sys.argv[1]), sys.argv[2]
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
held = []
while True:
    connection, _ = listener.accept()
    if how == "mute":
        held.append(connection)
    else:
        threading.Thread(target=serve, args=(connection, to), daemon=True).start()
