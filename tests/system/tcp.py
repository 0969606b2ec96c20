"""tcp.py: a client and a server on the loopback interface. Two connections of 300,000 bytes up and 1,000 bytes down. Prints the server's port."""
import socket
import threading

UP, DOWN, TIMES = 300_000, 1_000, 2


def take(connection, n):
    while n > 0:
        n -= len(connection.recv(65536))


def serve(listener):
    for _ in range(TIMES):
        connection, _ = listener.accept()
        with connection:
            take(connection, UP)
            connection.sendall(b"d" * DOWN)


with socket.create_server(("127.0.0.1", 0)) as listener:
    port = listener.getsockname()[1]
    server = threading.Thread(target=serve, args=(listener,))
    server.start()
    for _ in range(TIMES):
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(b"u" * UP)
            take(client, DOWN)
    server.join()
print(port)
