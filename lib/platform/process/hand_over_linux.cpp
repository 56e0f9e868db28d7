// Sends descriptors and notes to another process through a socket (unix(7), SCM_RIGHTS).

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "platform/platform.hpp"
#include "platform/process/socket_files.hpp"
#include "platform/system_calls.hpp"

namespace tensorpool::platform {
namespace {

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

bool connect_to(const Socket& socket, const char* name) noexcept {
    sockaddr_un address{};
    const socklen_t bytes = make_address(name, address);
    return bytes != 0 && socket.number >= 0 &&
           setsockopt(socket.number, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) == 0 &&
           connect(socket.number, reinterpret_cast<const sockaddr*>(&address), bytes) == 0 &&
           is_of_this_user(socket.number);
}

}  // namespace

int send_files(int socket, const int* files, unsigned count, const void* message,
               std::size_t bytes) noexcept {
    const SystemCalls system_calls;
    iovec text{.iov_base = const_cast<void*>(message), .iov_len = bytes};
    alignas(cmsghdr) char control[CMSG_SPACE(max_sent_files * sizeof(int))] = {};
    msghdr header{};
    header.msg_iov = &text;
    header.msg_iovlen = 1;
    if (count != 0) {
        header.msg_control = control;
        header.msg_controllen = CMSG_SPACE(count * sizeof(int));
        cmsghdr* const rights = CMSG_FIRSTHDR(&header);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(count * sizeof(int));
        std::memcpy(CMSG_DATA(rights), files, count * sizeof(int));
    }
    ssize_t sent = 0;
    do {
        sent = sendmsg(socket, &header, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    if (sent < 0) return errno;
    return static_cast<std::size_t>(sent) == bytes ? 0 : EMSGSIZE;
}

bool hand_files_over(const char* socket_name, const int* files, unsigned count) noexcept {
    const SystemCalls system_calls;
    if (count == 0 || count > max_sent_files) return false;
    const Socket socket;
    const char byte = 0;
    return connect_to(socket, socket_name) &&
           send_files(socket.number, files, count, &byte, 1) == 0;
}

bool send_note(const char* socket_name, const char* text) noexcept {
    const SystemCalls system_calls;
    const std::size_t bytes = std::strlen(text);
    const Socket socket;
    return bytes != 0 && connect_to(socket, socket_name) &&
           send_files(socket.number, nullptr, 0, text, bytes) == 0;
}

}  // namespace tensorpool::platform
