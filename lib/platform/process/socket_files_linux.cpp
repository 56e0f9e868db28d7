#include "platform/process/socket_files.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "platform/system_calls.hpp"

namespace tensorpool::platform {
namespace {

// Room for several descriptors, so that a message with more than one is noticed. The system closes
// those beyond it.
constexpr std::size_t max_files = 4;

/// Closes the descriptors of a message, unless there is exactly one.
void take_files(const cmsghdr& rights, ReceivedFile& received) noexcept {
    const std::size_t count = (rights.cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
        close_file(received.file);
        std::memcpy(&received.file, CMSG_DATA(&rights) + i * sizeof(int), sizeof(int));
        ++received.files;
    }
    if (received.files == 1) return;
    close_file(received.file);
    received.file = -1;
}

}  // namespace

SocketUsers users_of_socket(int socket) noexcept {
    const SystemCalls system_calls;
    ucred peer{};
    socklen_t bytes = sizeof peer;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) return {};
    return {true, geteuid(), peer.uid};
}

ReceivedFile receive_file(int socket, void* message, std::size_t bytes) noexcept {
    const SystemCalls system_calls;
    iovec text{.iov_base = message, .iov_len = bytes};
    alignas(cmsghdr) char control[CMSG_SPACE(max_files * sizeof(int))] = {};
    msghdr header{};
    header.msg_iov = &text;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    ssize_t length = 0;
    do {
        length = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
    } while (length < 0 && errno == EINTR);
    ReceivedFile received;
    if (length < 0) {
        received.error = errno;
        return received;
    }
    received.bytes = static_cast<std::size_t>(length);
    received.cut = (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
    for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr;
         part = CMSG_NXTHDR(&header, part)) {
        if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS) {
            take_files(*part, received);
        }
    }
    return received;
}

void close_file(int file) noexcept {
    const SystemCalls system_calls;
    if (file >= 0) close(file);
}

}  // namespace tensorpool::platform
