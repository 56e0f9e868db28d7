#pragma once

/// Descriptors of files that processes hand over through a connected Unix socket (unix(7)).

#include <cstddef>

namespace tensorpool::platform {

/// The effective users of the processes at both ends of a socket. That of the peer is the one which
/// it had when it connected, listened, or made a pair of sockets (SO_PEERCRED).
struct SocketUsers {
    bool known = false;
    unsigned long own = 0;
    unsigned long peer = 0;
};
SocketUsers users_of_socket(int socket) noexcept;

/// The most descriptors of one message.
inline constexpr unsigned max_sent_files = 8;
/// Sends a message of `bytes` bytes with `count` descriptors, which may be 0. Returns 0, or the
/// system's error number.
int send_files(int socket, const int* files, unsigned count, const void* message,
               std::size_t bytes) noexcept;

/// What `receive_file` received.
struct ReceivedFile {
    int error = 0;          ///< the system's error number; 0 for none
    std::size_t bytes = 0;  ///< of the message; 0 if the peer closed the connection
    bool cut = false;       ///< the message was longer
    unsigned files = 0;     ///< descriptors that came with it
    int file = -1;          ///< the descriptor, if there was exactly one. The caller must close it
};
/// Receives a message of up to `bytes` bytes. Its descriptors are closed by an exec, and at once if
/// there are several.
ReceivedFile receive_file(int socket, void* message, std::size_t bytes) noexcept;

/// Closes a descriptor. A negative one is ignored.
void close_file(int file) noexcept;

}  // namespace tensorpool::platform
