// Sends descriptors and notes to another process through a socket (unix(7), SCM_RIGHTS).

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "platform/platform.hpp"
#include "platform/system_calls.hpp"

namespace tensorpool::platform {
namespace {

constexpr unsigned max_files = 8;
// A listener that does not receive messages must not block the program for longer than this.
constexpr timeval patience{.tv_sec = 1, .tv_usec = 0};

/// A socket that is closed by the destructor.
struct Socket {
    int number = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    Socket() noexcept = default;
    ~Socket() {
        if (number >= 0) ::close(number);
    }
    Socket(const Socket&) = delete;
    Socket& operator=(const Socket&) = delete;
};

/// Returns the length of the address; 0 if the name does not fit.
socklen_t make_address(const char* name, sockaddr_un& address) noexcept {
    const std::size_t length = std::strlen(name);
    if (length == 0 || length >= sizeof address.sun_path) return 0;
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name, length);  // a leading zero: abstract name, no path
    return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
}

bool is_of_this_user(int socket) noexcept {
    ucred peer{};
    socklen_t bytes = sizeof peer;
    return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 &&
           (peer.uid == geteuid() || peer.uid == 0);
}

bool send(int socket, const msghdr& message, std::size_t bytes) noexcept {
    return sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes);
}

bool connect_to(const Socket& socket, const char* name) noexcept {
    sockaddr_un address{};
    const socklen_t bytes = make_address(name, address);
    return bytes != 0 && socket.number >= 0 &&
           setsockopt(socket.number, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) == 0 &&
           connect(socket.number, reinterpret_cast<const sockaddr*>(&address), bytes) == 0 &&
           is_of_this_user(socket.number);
}

bool send_files(int socket, const int* files, unsigned count) noexcept {
    char byte = 0;
    iovec text{.iov_base = &byte, .iov_len = 1};
    alignas(cmsghdr) char control[CMSG_SPACE(max_files * sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &text;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(count * sizeof(int));
    cmsghdr* const rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(count * sizeof(int));
    std::memcpy(CMSG_DATA(rights), files, count * sizeof(int));
    return send(socket, message, 1);
}

}  // namespace

bool hand_files_over(const char* socket_name, const int* files, unsigned count) noexcept {
    const SystemCalls system_calls;
    if (count == 0 || count > max_files) return false;
    const Socket socket;
    return connect_to(socket, socket_name) && send_files(socket.number, files, count);
}

bool send_note(const char* socket_name, const char* text) noexcept {
    const SystemCalls system_calls;
    const std::size_t bytes = std::strlen(text);
    iovec part{.iov_base = const_cast<char*>(text), .iov_len = bytes};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    const Socket socket;
    return bytes != 0 && connect_to(socket, socket_name) && send(socket.number, message, bytes);
}

}  // namespace tensorpool::platform
